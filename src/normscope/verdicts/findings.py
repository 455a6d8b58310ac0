"""The file data/findings.yaml: the questions that statements answer, and what was found."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from normscope.errors import Explained, explain, suggest
from normscope.io.yamlfile import read_yaml
from normscope.schema import Strict
from normscope.verdicts.comparison import Outcome
from normscope.verdicts.document import MAIN, Statement, Text


def _is_template(text: str) -> str:
    try:
        text.format("", "", effect="")
    except (LookupError, ValueError):
        raise ValueError("only {effect}, and {0} and {1} for the means of the sides") from None
    return text


class Answer(Strict):
    """A sentence, and the outcome of a comparison that it needs.

    Args:
        says: ``{effect}`` in it is the effect; ``{0}`` and ``{1}`` are the means of the sides.
        statement, comparison: The names of what is tested; the main comparison if empty.
        outcome: What the comparison has to come out as.
    """

    says: Annotated[Text, AfterValidator(_is_template)]
    statement: str
    comparison: str = MAIN
    outcome: Outcome


class Published(Strict):
    """A document as published, and what its corrected version shows.

    Args:
        did: What the document did.
        figure: Its figure, in a form like the document's own.
        corrected: A sentence on a statement of the document.
    """

    did: Text
    figure: str
    corrected: Answer


class Question(Strict):
    """A question about norms.

    Args:
        asks, found: The question, and the answer in short, which all of ``answers`` support.
        figure: The figure that shows it.
        answers: Sentences with numbers, the most important one first.
        statements: The keys of those that belong to it.
        contradictions: Pairs of statements that cannot both hold.
        published: Documents that are shown as published and corrected.
    """

    asks: Text
    found: Text
    figure: str
    answers: Annotated[list[Answer], Field(min_length=1)]
    statements: Annotated[list[str], Field(min_length=1)]
    contradictions: list[tuple[str, str]] = Field(default=[])
    published: list[Published] = Field(default=[])

    @property
    def sentences(self) -> dict[str, Answer]:
        """All sentences with numbers, by their places in the file."""
        corrected = {f"published.{i}.corrected": a.corrected for i, a in enumerate(self.published)}
        return {f"answers.{i}": answer for i, answer in enumerate(self.answers)} | corrected


class Findings(Strict):
    """The questions by their names, in the order in which they are shown."""

    questions: Annotated[dict[str, Question], Field(min_length=1)]

    @property
    def of_statements(self) -> dict[str, str]:
        """The question of every statement that has one, by key, in the order of the questions."""
        return {key: name for name, one in self.questions.items() for key in one.statements}

    def contradicted_by(self, key: str) -> list[str]:
        """The statements that cannot hold if this one does."""
        pairs = [pair for one in self.questions.values() for pair in one.contradictions]
        return [other for pair in pairs if key in pair for other in pair if other != key]


def load(
    path: Path, statements: Mapping[str, Statement], figures: Collection[str] | None = None
) -> Findings:
    """Read and validate the questions.

    Args:
        statements: All statements by key. A question need not name each of them.
        figures: Names of figures. Without them, the figure of a question is not looked up.

    Raises:
        Explained: A question is wrong. Every line names the key, and the closest match.
    """
    try:
        findings = Findings.model_validate({"questions": read_yaml(path)})
        problems = list(_problems(findings, statements, figures))
    except ValidationError as e:
        findings, lines = None, explain(e.errors(), Findings.model_json_schema)
        problems = [line.removeprefix("questions.") for line in lines]
    if findings is None or problems:
        raise Explained("\n".join(f"{path}: {problem}" for problem in problems))
    return findings


def _problems(
    findings: Findings, statements: Mapping[str, Statement], figures: Collection[str] | None
) -> Iterator[str]:
    for name, question in findings.questions.items():
        pairs = [key for pair in question.contradictions for key in pair]
        named: list[tuple[str, str, Collection[str]]]
        named = [("statements", key, statements) for key in [*question.statements, *pairs]]
        for place, answer in question.sentences.items():
            named.append((f"{place}.statement", answer.statement, statements))
            if answer.statement in statements:
                known = statements[answer.statement].comparisons
                named.append((f"{place}.comparison", answer.comparison, known))
        if figures is not None:
            shown = [question.figure, *(one.figure for one in question.published)]
            named += [("figure", figure, figures) for figure in shown]
        for place, word, known in named:
            if word not in known:
                yield f"{name}.{place}: unknown {word!r}; {suggest(word, filter(None, known))}"
    counts = Counter(key for one in findings.questions.values() for key in one.statements)
    for key in (key for key, n in counts.items() if n > 1):
        yield f"statements: {key} belongs to several questions; leave it in one"
