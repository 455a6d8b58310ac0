-- What HTML, LaTeX and Typst make of the divisions in the Markdown of a page:
-- .table has a title and a table, .figure an image and its caption, .card a statement, its finding, and what opens
-- below them on the page.
local stringify = pandoc.utils.stringify
local is_page = FORMAT:match "html"
local LONG = 40 -- characters, beyond which a cell breaks into lines
local LINE = 118 -- characters of the words of all columns, beyond which a table is too wide for print
local PAPER = 90 -- characters of a line in LaTeX

local function cells(table)
  local all = pandoc.List()
  local rows = pandoc.List() .. table.head.rows
  for _, body in ipairs(table.bodies) do rows:extend(body.body) end
  for _, row in ipairs(rows) do
    for column, cell in ipairs(row.cells) do all:insert {column, cell, stringify(cell.contents)} end
  end
  return all
end

-- the length of the longest text, or of the longest word, of each column, and their sum
local function lengths(table, pattern)
  local longest, sum = {}, 0
  for i = 1, #table.colspecs do longest[i] = 1 end
  for _, cell in ipairs(cells(table)) do
    for part in cell[3]:gmatch(pattern) do
      longest[cell[1]] = math.max(longest[cell[1]], utf8.len(part))
    end
  end
  for _, length in ipairs(longest) do sum = sum + length end
  return longest, sum
end

-- in LaTeX, columns of a table that is wider than the line have room for their words, and more for longer texts
local function set_widths(table)
  local texts, width = lengths(table, ".+")
  if width <= PAPER then return end
  local words, all = lengths(table, "%S+")
  for _, text in ipairs(texts) do all = all + math.sqrt(text) end
  for i, spec in ipairs(table.colspecs) do spec[2] = (words[i] + math.sqrt(texts[i])) / all end
end

local FOLD = "<details><summary>How to rerun it</summary>"
local RESULTS = pandoc.List {"all", "as claimed", "opposite", "mixed", "undecided", "not testable here", "yes", "no"}
local cards = {} -- the identifiers of the cards by their claims

-- rows of the claims lead to their cards, and radio buttons choose those of one result
local function to_claims(shown)
  local present = {all = true}
  for _, row in ipairs(shown.bodies[1].body) do
    local claim, result = row.cells[1], stringify(row.cells[3].contents)
    local card = cards[stringify(claim.contents)]
    if card then claim.contents = {pandoc.Plain {pandoc.Link(claim.contents[1].content, "#" .. card)}} end
    row.attr.classes:insert((result:gsub(" ", "-")))
    present[result] = true
  end
  local buttons = RESULTS:filter(function(result) return present[result] end):map(function(result)
    local checked = result == "all" and " checked" or ""
    local id = result:gsub(" ", "-")
    return ('<label><input type="radio" name="result" id="%s"%s> %s</label>'):format(id, checked, result)
  end)
  return pandoc.RawBlock("html", '<div class="results">' .. table.concat(buttons) .. "</div>")
end

local function to_table(div)
  local title, table = div.content[1], div.content[2]
  table.caption.long = {pandoc.Plain(title.content)}
  if is_page then
    table.bodies[1].row_head_columns = 1
    for _, cell in ipairs(cells(table)) do
      if utf8.len(cell[3]) > LONG then cell[2].attr.classes:insert "long" end
    end
    -- in pairs: the order in a table of Lua changes from run to run
    local attributes = {{"tabindex", "0"}, {"role", "region"}, {"aria-label", "Table: " .. stringify(title)}}
    local buttons = div.identifier == "table-claims" and {to_claims(table)} or {}
    return pandoc.List(buttons) .. {pandoc.Div(table, pandoc.Attr(div.identifier, {"table"}, attributes))}
  end
  table.identifier = div.identifier
  for _, spec in ipairs(table.colspecs) do
    if spec[1] == "AlignDefault" then spec[1] = "AlignLeft" end
  end
  if FORMAT == "latex" then
    set_widths(table)
  elseif select(2, lengths(table, "%S+")) > LINE then
    return pandoc.Para(pandoc.Emph {pandoc.Str("The table “" .. stringify(title) .. "” is too wide for print; summary.html has it.")})
  end
  return table
end

local function to_figure(div)
  local image, caption = div.content[1].content[1], div.content[2]
  image.caption = {pandoc.Str(stringify(caption.content[1]))}
  return pandoc.Figure(pandoc.Plain(image), {long = {pandoc.Plain(caption.content)}}, pandoc.Attr(div.identifier))
end

local function to_card(div)
  local more = div.content:remove()
  if not is_page then return {} end -- print has the table of all claims
  more.identifier = div.identifier
  cards[stringify(div.content[1].content:filter(function(part) return part.t == "Strong" end))] = div.identifier
  local blocks = pandoc.List {pandoc.RawBlock("html", '<details class="card">\n<summary>')}
  for i, part in ipairs(div.content) do
    blocks:insert(pandoc.Plain {pandoc.Span(part.content, pandoc.Attr("", {i == 1 and "stated" or "finding"}))})
  end
  return blocks .. {pandoc.RawBlock("html", "</summary>"), more, pandoc.RawBlock("html", "</details>")}
end

local function division(div)
  if div.classes:includes "table" then return to_table(div) end
  if div.classes:includes "figure" then return to_figure(div) end
  if div.classes:includes "card" then return to_card(div) end
  if div.classes:includes "fold" then return {pandoc.RawBlock("html", FOLD), div, pandoc.RawBlock("html", "</details>")} end
end

-- the first heading is the title; print has neither the appendices nor further figures
local function document(doc)
  if doc.blocks[1] and doc.blocks[1].t == "Header" then
    doc.meta.title = doc.blocks:remove(1).content
  end
  local is_left_out = false
  doc.blocks = doc.blocks:filter(function(part)
    if part.identifier == "appendices" or part.identifier == "figures" then is_left_out = not is_page end
    if part.identifier == "data" then is_left_out = false end
    return not is_left_out
  end)
  return doc
end

return {
  -- what looks like markup of HTML is text
  {RawInline = function(raw) return pandoc.Str(raw.text) end,
   RawBlock = function(raw) return pandoc.Para(pandoc.Str(raw.text)) end},
  {Div = division, Pandoc = document, Link = function(link) return not (is_page or link.target:find "^[^#]") and link.content or nil end},
}
