"""A block seen as a syntax tree: is it fit to run, what does it need, what kind of program is it?

Everything here is pure and looks only at the code. Nothing here is a security measure: what a block may
*do* is decided by the sandbox, what it is told *early* is decided here, before any tool has been touched.

    check(code, limit)      -> the BlockError the model should read, or None when the block may run
    compiled(code)          -> the code object a sandbox runs (top-level `return` and `await` rewritten)
    named_servers(code)     -> {"google-maps", "weather"}, or None when a name is computed
    block_type(code)        -> "Atomic" | "Chaining" | "Transform" | "Aggregate" | "Helper"
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Literal

from hypertool.errors import BlockError

BlockType = Literal["Atomic", "Chaining", "Transform", "Aggregate", "Helper"]

FILENAME = "<block>"
STOP = "__stop__"  # the guest puts an exception class of this name into the block's namespace

CALLS = ("call_tool", "call_tools")
REFUSED = ("os", "subprocess", "socket")  # these fail silently or late in the jail, so they fail early here
HARMLESS_OS = {"path", "sep", "linesep"}
DYNAMIC = {"globals", "locals", "vars", "exec", "setattr"}  # may bind `result` out of sight of the tree
COMPUTING = {
    "sorted",
    "min",
    "max",
    "sum",
    "map",
    "filter",
    "sort",
    "reduce",
    "groupby",
    "findall",
    "finditer",
}

_Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Loop = (ast.For, ast.AsyncFor, ast.While, *_Comprehension)
_Branch = (ast.If, ast.IfExp, ast.Match)


def check(code: str, limit_chars: int) -> BlockError | None:
    """The first reason why this block must not start, or None. No tool has been called when it speaks."""
    if len(code) > limit_chars:
        return BlockError(
            "message_too_large",
            "MessageTooLarge",
            f"The block has {len(code):,} characters, the limit is {limit_chars:,}. "
            "Split the work into several blocks.",
        )
    try:
        compiled(code)
        tree = ast.parse(code)
        return _refused_import(tree, code) or _missing_result(tree, code)
    except SyntaxError as error:
        return _at("syntax", type(error).__name__, error.msg, code, error.lineno)
    except (ValueError, OverflowError) as error:  # null bytes, lone surrogates
        return BlockError("syntax", "SyntaxError", str(error))
    except (RecursionError, MemoryError):
        return BlockError("syntax", "SyntaxError", "the code is nested too deeply to compile")


def prepare(code: str) -> ast.Module:
    """The tree that is run: a direct `await call_tool(...)` loses its await, a top-level `return` stops.

    Lines and columns stay those of the block. Raises SyntaxError as `ast.parse` does.
    """
    tree = _DropAwait().visit(ast.parse(code, FILENAME))
    tree = _TopLevelReturn().visit(tree)
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


@lru_cache(maxsize=64)
def compiled(code: str) -> CodeType:
    """`prepare`, compiled. A block that awaits at top level becomes code that evaluates to a coroutine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the block's SyntaxWarnings are no business of our stderr
        made = compile(prepare(code), FILENAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(made, CodeType)
    return made


def named_servers(code: str) -> set[str] | None:
    """Every server the block names as a literal; None when one is computed, so that all are needed.

    A block that does not parse needs none, because it does not run.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    called = {id(call.func) for call in _call_sites(tree)}
    servers: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in CALLS and id(node) not in called:
            return None  # handed on under another name: map(call_tool, ...), partial(call_tool, ...)
        if isinstance(node, ast.Name) and node.id == "describe_tools":
            return None
    for call in _call_sites(tree):
        for server in _server_nodes(call):
            if not (isinstance(server, ast.Constant) and isinstance(server.value, str)):
                return None
            servers.add(server.value)
    return servers


def block_type(code: str) -> BlockType:
    """The paper's five kinds, decided by the tree alone, first rule that fits.

    Helper: defines a function or class. Aggregate: a call inside a loop, a parallel call, or several
    calls none of which feeds another. Chaining: a call's output reaches a later call's arguments.
    Transform: loops, branches or computes over what one call (or none) returned. Atomic: one thin call.
    """
    tree = prepare(code)
    nodes = list(ast.walk(tree))
    if any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for node in nodes):
        return "Helper"
    calls = list(_call_sites(tree))
    loose = sum(isinstance(node, ast.Name) and node.id in CALLS for node in nodes) > len(calls)
    parallel = any(_name(call.func) == "call_tools" for call in calls)
    if loose or parallel or any(_repeats(loop) for loop in nodes if isinstance(loop, (*_Loop, ast.Lambda))):
        return "Aggregate"
    if len(calls) > 1:
        return "Chaining" if _feeds(tree) else "Aggregate"
    computes = any(
        isinstance(node, (*_Loop, *_Branch, ast.Lambda))
        or (isinstance(node, ast.Call) and _name(node.func) in COMPUTING)
        for node in nodes
    )
    return "Atomic" if calls and not computes else "Transform"


def _at(kind: Literal["syntax", "runtime"], name: str, message: str, code: str, line: int | None) -> BlockError:
    lines = code.splitlines()
    if line is None or not 1 <= line <= len(lines):
        return BlockError(kind, name, message, line)
    source = lines[line - 1].strip()[:160]
    return BlockError(kind, name, message, line, source, ((line, "<module>", source),))


def _refused_import(tree: ast.Module, code: str) -> BlockError | None:
    """`os.system` in the jail returns -1 without a word, so say at once what is not there."""
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            if used and used <= HARMLESS_OS:  # `import os` for os.path.splitext and nothing else
                names = [name for name in names if name.split(".")[0] != "os"]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
            if node.module == "os" and {alias.name for alias in node.names} <= HARMLESS_OS:
                continue
        else:
            continue
        for name in names:
            if name.split(".")[0] in REFUSED and name != "os.path":
                message = (
                    f"'{name}' is of no use here: files, network, processes and environment variables are "
                    "not available in a block; use call_tool."
                )
                return _at("runtime", "ImportError", message, code, node.lineno)
    return None


def _missing_result(tree: ast.Module, code: str) -> BlockError | None:
    finder = _ResultFinder()
    finder.visit(tree)
    if finder.found:
        return None
    message = "The block never assigns 'result', so nothing was run. Assign the final value to a variable named result."
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        value = last.value
        if isinstance(value, ast.Call) and _name(value.func) == "print" and len(value.args) == 1:
            value = value.args[0]  # a block has nobody to print to
        text = ast.get_source_segment(code, value) or ""
        if text and "\n" not in text and len(text) <= 160:
            message += f" Assign it: result = {text}"
    elif finder.local:
        message += " Inside a function 'result' is a local variable: return it and assign it at top level."
    return BlockError("no_result", "NoResult", message)


class _ResultFinder(ast.NodeVisitor):
    """Does anything bind the module's name `result`? `found` errs on the side of letting a block run."""

    def __init__(self) -> None:
        self.found = False
        self.local = False
        self.inside = 0  # function and class bodies around the current node

    def visit(self, node: ast.AST) -> None:
        bound: str | None = None
        if isinstance(node, ast.Name):
            bound = node.id if isinstance(node.ctx, ast.Store) else None
            self.found |= node.id in DYNAMIC
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound = node.name
        elif isinstance(node, ast.alias):
            bound = node.asname or node.name.split(".")[0]
            self.found |= node.name == "*"
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)):
            bound = node.name
        elif isinstance(node, ast.MatchMapping):
            bound = node.rest
        elif isinstance(node, ast.Global):
            self.found |= "result" in node.names
        elif isinstance(node, ast.Return) and not self.inside:
            self.found = True
        if bound == "result":
            self.found |= not self.inside
            self.local |= bool(self.inside)
        if isinstance(node, ast.comprehension):  # its targets live in the comprehension only
            for child in (node.iter, *node.ifs):
                self.visit(child)
            return
        scope = isinstance(node, _Scope)
        self.inside += scope
        self.generic_visit(node)
        self.inside -= scope


class _DropAwait(ast.NodeTransformer):
    """`await call_tool(...)` means `call_tool(...)`: models write both, and calls are synchronous."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and _name(node.value.func) in CALLS:
            return node.value
        return node


class _TopLevelReturn(ast.NodeTransformer):
    """`return x` outside any function means `result = x` and stop.

    The stop is an exception; a `try` around it gets a first handler that lets the stop through.
    """

    def __init__(self) -> None:
        self.seen = 0

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        if isinstance(node, _Scope):
            return node
        if isinstance(node, ast.Return):
            self.seen += 1
            value = node.value or ast.Constant(None)
            assign = ast.Assign([ast.Name("result", ast.Store())], value)
            stop = ast.Raise(ast.Name(STOP, ast.Load()), None)
            return [ast.copy_location(assign, node), ast.copy_location(stop, node)]
        before = self.seen
        self.generic_visit(node)
        if isinstance(node, ast.Try) and node.handlers and self.seen > before:
            through = ast.ExceptHandler(ast.Name(STOP, ast.Load()), None, [ast.Raise(None, None)])
            for part in ast.walk(through):
                ast.copy_location(part, node)
            node.handlers.insert(0, through)
        return node


def _name(function: ast.expr) -> str:
    """The last part of a called name: `sorted`, `re.findall` -> findall, `rows.sort` -> sort."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _call_sites(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield node


def _server_nodes(call: ast.Call) -> Iterator[ast.expr | None]:
    """The expressions that say which server a call goes to; None stands for one that cannot be found."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        yield None
    elif _name(call.func) == "call_tool":
        named = [k.value for k in call.keywords if k.arg in ("server_name", "server")]
        yield from call.args[:1] or named or (None,)
    else:
        batch = call.args[0] if call.args else None
        if not isinstance(batch, (ast.List, ast.Tuple)):
            yield None
            return
        for item in batch.elts:
            yield item.elts[0] if isinstance(item, (ast.List, ast.Tuple)) and item.elts else None


def _repeats(loop: ast.AST) -> bool:
    """Whether a tool call lies in the repeated part of a loop; its iterable is evaluated only once."""
    once: ast.AST | None = None
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        once = loop.iter
    elif isinstance(loop, _Comprehension):
        once = loop.generators[0].iter
    skipped = {id(call) for call in _call_sites(once)} if once else set()
    return any(id(call) not in skipped for call in _call_sites(loop))


def _feeds(tree: ast.Module) -> bool:
    """Whether some call's value reaches the arguments of another, followed through names in order."""
    carriers: set[str] = set()

    def carries(node: ast.AST) -> bool:
        return any(
            (isinstance(part, ast.Name) and part.id in carriers)
            or (isinstance(part, ast.Call) and _name(part.func) in CALLS)
            for part in ast.walk(node)
        )

    def fed(node: ast.AST) -> bool:
        return any(
            carries(arg)
            for call in _call_sites(node)
            for arg in (*call.args, *(keyword.value for keyword in call.keywords))
        )

    def walk(statements: list[ast.stmt]) -> bool:
        for statement in statements:
            heads = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
            if any(fed(head) for head in heads):
                return True
            if any(carries(head) for head in heads):
                names = (node for head in heads for node in ast.walk(head) if isinstance(node, ast.Name))
                carriers.update(name.id for name in names if isinstance(name.ctx, ast.Store))
                carriers.update(_mutated(heads))
            for name in ("body", "orelse", "finalbody"):
                if walk(getattr(statement, name, [])):
                    return True
            for branch in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
                if walk(branch.body):
                    return True
        return False

    return walk(tree.body)


def _mutated(heads: list[ast.expr]) -> Iterator[str]:
    """Names changed in place by a statement: `rows.append(...)`, `table[key] = ...`."""
    for head in heads:
        target = head.func if isinstance(head, ast.Call) else head
        while isinstance(target, (ast.Attribute, ast.Subscript)):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id
