"""Where the norms of a model stand, by the graph that autograd makes of one forward pass.

The graph has every operation between the embedding and the logits, whatever the classes of the
model. A residual sum adds to a branch the tensor from which a product with weights made the branch.
A norm stands before a sublayer if the sum adds to its input what becomes of its output.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from normscope.measure.recognition import first_tensor

BEFORE, AFTER, AFTER_SUM = "before a sublayer", "after a sublayer", "after the sum"
INSIDE, EMBEDDING, FINAL, HEAD = "inside a sublayer", "embedding", "final", "head"
QUERIES, KEYS, VALUES = "queries", "keys", "values"

# names of autograd's operations that keep or scale a tensor, if no other depends on the tokens
LIGHT = re.compile(
    r"Add|Sub|Mul|Div|Neg|Alias|View|UnsafeView|ReshapeAlias|Transpose|Permute|T|Unsqueeze|Squeeze|"
    r"Expand|Repeat|Clone|ToCopy|AsStrided|Slice|Select|Split|SplitWithSizes|Unbind|NativeDropout"
)
PRODUCT = re.compile(r".*(mm|Mm|Linear|Convolution|ScaledDotProduct).*")

Node = tuple[Any, int]  # an operation of autograd, and the number of its output


class Call(NamedTuple):
    """A call of a norm.

    Attributes:
        norm: its name.
        x, y: where its input and its output come from.
        d: the channels that it normalizes together.
    """

    norm: str
    x: Node
    y: Node
    d: int


@contextmanager
def calling(model: nn.Module, norms: Mapping[str, nn.Module]) -> Iterator[list[Call]]:
    """The calls of norms while the body runs the model once, with gradients of all parameters."""
    calls: list[Call] = []

    def keep(norm: str, _: nn.Module, args: tuple, named: dict[str, Any], output: Any) -> None:
        x, y = first_tensor((*args, *named.values())), first_tensor(output)
        if x is not None and y is not None and x.grad_fn and y.grad_fn:
            calls.append(Call(norm, _node(x), _node(y), x.shape[-1]))

    frozen = [p for p in model.parameters() if p.is_floating_point() and not p.requires_grad]
    hooks = [
        norm.register_forward_hook(partial(keep, name), with_kwargs=True)
        for name, norm in norms.items()
    ]
    try:
        for p in frozen:
            p.requires_grad_(True)
        yield calls
    finally:
        for p in frozen:
            p.requires_grad_(False)
        for hook in hooks:
            hook.remove()


class Places:
    """The places of norms in the graph of a forward pass.

    Args:
        logits: the output of the pass.
        calls: of norms in the pass.
    """

    def __init__(self, logits: Tensor, calls: list[Call]) -> None:
        self._inputs = _graph(_node(logits))
        self._calls = [call for call in calls if {call.x, call.y} <= self._inputs.keys()]
        self._outputs = {call.y for call in self._calls}
        self._users: dict[Node, list[Node]] = {node: [] for node in self._inputs}
        self._within: dict[Node, Call] = {}  # operations of norms
        for node, inputs in self._inputs.items():
            for one in inputs:
                self._users[one].append(node)
        for call in self._calls:
            self._within |= dict.fromkeys(self._operations(call), call)
        self._roots: dict[Node, Node] = {}
        self._before: dict[Node, int] = {}  # the nodes on which a node depends, as bits
        self._bits: dict[Node, int] = {}
        self._stream: dict[Node, int] = {}  # the states of the residual stream that a sum adds up
        self._states = 0  # all of them
        self._branches: dict[Node, tuple[Node, Node]] = {}  # of residual sums: stream and branch
        self._trace()

    def _operations(self, call: Call) -> set[Node]:
        """The operations between the input and the output of a norm."""
        before = {node for node, _ in _walk(call.y, self._inputs, lambda node: node != call.x)}
        before |= {call.y}
        after = _walk(call.x, self._users, before.__contains__)
        return {node for node, _ in after if node in before}

    def _trace(self) -> None:
        """Find the residual sums, from the embedding to the logits."""
        through: dict[Node, int] = {}  # as _before, but with a product of weights in between
        for i, (node, inputs) in enumerate(self._inputs.items()):
            self._roots[node] = root = self._roots[inputs[0]] if self._is_light(node) else node
            self._before[node] = through[node] = 0
            for one in inputs:
                self._before[node] |= self._before[one]
                through[node] |= through[one]
            if root != node:
                continue
            if self._is_product(node):
                through[node] |= self._before[node]
            self._bits[node] = 1 << i
            self._before[node] |= 1 << i
            self._stream[node] = 1 << i
            if len(inputs) == 2 and _name(node) == "Add":
                for stream, branch in (inputs, inputs[::-1]):
                    states = self._stream[self._roots[stream]]
                    if states & through[branch]:
                        self._branches[node] = stream, branch
                        self._stream[node] |= states
                        self._states |= states
                        break

    def _is_light(self, node: Node) -> bool:
        is_alone = len(self._inputs[node]) == 1 and node not in self._outputs
        return is_alone and bool(LIGHT.fullmatch(_name(node)))

    def _is_product(self, node: Node) -> bool:
        return bool(PRODUCT.fullmatch(_name(node)))

    def find(self, norm: str) -> str | None:
        """The place of a norm; None if it is not known, several if its calls differ."""
        places = {self._place(call): None for call in self._calls if call.norm == norm}
        return None if None in places or not places else " and ".join(map(str, places))

    def _place(self, call: Call) -> str | None:
        ends = self._ends(call)
        roles = [self._role(call.d, *end) for end in ends]
        if len({*roles}) > 1:
            roles = [r for r, (_, one) in zip(roles, ends, strict=True) if _depends(one, call.y)]
        if roles and None not in roles:
            return " and ".join(map(str, dict.fromkeys(roles)))
        return self._place_on_stream(call, ends)

    def _place_on_stream(self, call: Call, ends: list[tuple[Node, Node]]) -> str | None:
        source, bit = self._roots[call.x], self._bits[call.y]
        is_sum = source in self._branches
        later = {s: pair for s, pair in self._branches.items() if self._before[s] & bit}
        if not later:
            return (FINAL if is_sum else HEAD) if self._branches else None
        if not self._before[source] & self._states:
            return EMBEDDING
        if any(self._roots[stream] == call.y for stream, _ in later.values()):
            return AFTER_SUM if is_sum else None
        if any(node in later and one == later[node][1] for node, one in ends):
            return AFTER
        is_read = any(
            self._stream[self._roots[stream]] & self._bits[source] and self._before[branch] & bit
            for stream, branch in later.values()
        )
        return BEFORE if is_read else INSIDE

    def _ends(self, call: Call) -> list[tuple[Node, Node]]:
        """Where the output of a norm ends: at products, residual sums and other norms.

        Each with the last operation before.
        """

        def is_end(user: Node) -> bool:
            return user in self._branches or self._is_product(user) or user in self._within

        steps = _walk(call.y, self._users, lambda user: not is_end(user))
        return [(user, node) for user, node in steps if is_end(user)]

    def _role(self, d: int, product: Node, operand: Node) -> str | None:
        """What an operand is in the products of attention, and whether a norm spans the heads."""
        inputs = self._inputs[product]
        if product in self._within or product in self._branches or len(inputs) < 2:
            return None  # else it is not a product, or one with weights
        is_fused = "ScaledDotProduct" in _name(product)
        left, right = inputs[:2] if is_fused else inputs[-2:]
        role = QUERIES if operand == left else KEYS if operand == right else VALUES
        if not is_fused and _name(self._roots[left]) == "Softmax":
            if operand == left:
                return None
            role = VALUES
        elif not is_fused and not self._becomes_weights(product):
            return None
        shape = _metadata(operand).shape
        size = shape[-2] if role == KEYS and not is_fused else shape[-1]
        return f"{role} {'over all heads' if d > size else 'per head'}"

    def _becomes_weights(self, scores: Node) -> bool:
        """Whether a softmax follows a product."""
        steps = _walk(scores, self._users, lambda user: not self._is_product(user))
        return any(_name(user) == "Softmax" for user, _ in steps)

    def cancelling(self, norm: str) -> list[str]:
        """The norms that alone read the output of a norm, so that its length has no effect."""
        readers: dict[str, None] = {}
        for call in (call for call in self._calls if call.norm == norm):
            light = _walk(
                call.y, self._users, lambda u: self._is_light(u) and u not in self._within
            )
            for user, _ in light:
                reader = self._within.get(user)
                if reader and self._roots[reader.x] == call.y:
                    readers[reader.norm] = None
                elif not self._is_light(user):
                    return []
        return list(readers)


def _node(t: Tensor) -> Node:
    return t.grad_fn, t.output_nr


def _name(node: Node) -> str:
    """The operation, such as Add."""
    return re.sub(r"Backward\d*$", "", node[0].name())


def _data(node: Node) -> list[Node]:
    return [(f, i) for f, i in node[0].next_functions if f is not None]


def _metadata(node: Node) -> Any:
    """The shape, the type and the device of an operation's output."""
    return node[0]._input_metadata[node[1]]


def _depends(node: Node, source: Node) -> bool:
    """Whether values of a node change with those of a source, of which the graph has a path.

    They may not, where queries, keys and values are joined and parted again.
    """
    if node == source:
        return True
    like = _metadata(node)
    weights = torch.ones(like.shape, dtype=like.dtype, device=like.device)
    edges = GradientEdge(*node), GradientEdge(*source)
    try:
        (slope,) = torch.autograd.grad(*edges, weights, retain_graph=True, allow_unused=True)
    except RuntimeError:  # an operation in place changed what the backward pass needs
        return True
    return slope is not None and bool(slope.any())


def _walk(
    start: Node, edges: Mapping[Node, list[Node]], goes_on: Callable[[Node], bool]
) -> Iterator[tuple[Node, Node]]:
    """The nodes that a search meets, each with the one before; it may go on behind a node."""
    seen, left = {start}, [start]
    while left:
        node = left.pop()
        for one in edges[node]:
            yield one, node
            if one not in seen and goes_on(one):
                seen.add(one)
                left.append(one)


def _graph(end: Node) -> dict[Node, list[Node]]:
    """The operations that depend on the tokens, in their order, with those of their inputs.

    It is empty if the end does not depend on them by operations that autograd knows.
    """
    inputs: dict[Node, list[Node] | None] = {}  # None: of operations on weights alone
    left = [end] if end[0] else []
    while left:
        node = left[-1]
        missing = [one for one in _data(node) if one not in inputs]
        if missing and node not in inputs:
            left += missing
            continue
        left.pop()
        if node not in inputs:
            sources = [one for one in _data(node) if inputs[one] is not None]
            inputs[node] = sources if sources or _name(node) == "Embedding" else None
    return {node: sources for node, sources in inputs.items() if sources is not None}
