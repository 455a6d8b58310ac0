"""Calls that run what a file holds, or hand text to a shell: found in a syntax tree."""

import ast
from collections.abc import Iterator

# by the name that a call has in full; a module that ends with a dot is forbidden as a whole
NEVER = {
    "eval": "runs text",
    "exec": "runs text",
    "compile": "runs text",
    "__import__": "runs what a name says",
    "os.system": "a shell",
    "os.popen": "a shell",
    "os.exec": "another program",
    "os.spawn": "another program",
    "subprocess.getoutput": "a shell",
    "subprocess.getstatusoutput": "a shell",
    "asyncio.create_subprocess_shell": "a shell",
    "pickle.load": "runs what a pickle says",
    "pickle.loads": "runs what a pickle says",
    "pickle.Unpickler": "runs what a pickle says",
    "pandas.read_pickle": "runs what a pickle says",
    "torch.hub.": "runs code of a repository",
    "cloudpickle.": "runs what a pickle says",
    "dill.": "runs what a pickle says",
    "joblib.": "runs what a pickle says",
    "marshal.": "runs what a file says",
    "shelve.": "runs what a pickle says",
    "runpy.": "runs a file",
    "importlib.import_module": "runs what a name says",
    "yaml.unsafe_load": "builds any object",
    "yaml.full_load": "builds objects",
    "shutil.unpack_archive": "writes where an archive says",
    "urllib.request.urlretrieve": "keeps what no hash holds",
}
SAFE_YAML = {"yaml.SafeLoader", "yaml.CSafeLoader"}


def _full_names(tree: ast.AST) -> dict[str, str]:
    """What each name of a module was imported as."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return names.get(node.id, node.id) if isinstance(node, ast.Name) else "?"


def _flag(call: ast.Call, name: str) -> object:
    """The constant that a keyword has; None without it, "?" for what is no constant."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value.value if isinstance(keyword.value, ast.Constant) else "?"
    return None


def _unsafe_flag(call: ast.Call, name: str, loaders: set[str], names: dict[str, str]) -> str:
    """What is wrong with the flags of a call that is safe with others; ``loaders`` are safe."""
    given = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "Loader")]
    wrong = {
        "weights_only is not True": name == "torch.load"
        and _flag(call, "weights_only") is not True,
        "allow_pickle": name == "numpy.load" and bool(_flag(call, "allow_pickle")),
        "no safe loader": name == "yaml.load"
        and [_dotted(g, names) in loaders for g in given] != [True],
        'no filter="data"': name.endswith(".extractall") and _flag(call, "filter") != "data",
        "a shell": name.startswith("subprocess.") and bool(_flag(call, "shell")),
        "runs code that comes with a model": bool(_flag(call, "trust_remote_code")),
    }
    return ", ".join(reason for reason, is_so in wrong.items() if is_so)


def forbidden(source: str) -> Iterator[tuple[int, str]]:
    """Line and reason of every such call, or import under which one could hide."""
    tree = ast.parse(source)
    names = _full_names(tree)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own = {c.name for c in classes if {_dotted(b, names) for b in c.bases} & SAFE_YAML}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            yield node.lineno, f"from {node.module} import *: hides what is called"
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            name = _dotted(node, names)
            for bad, reason in NEVER.items():
                whole = bad.endswith((".", "exec", "spawn")) and "." in bad
                if name == bad or (whole and name.startswith(bad)):
                    yield node.lineno, f"{name}: {reason}"
        if isinstance(node, ast.Call):
            name = _dotted(node.func, names)
            if reason := _unsafe_flag(node, name, SAFE_YAML | own, names):
                yield node.lineno, f"{name}: {reason}"
