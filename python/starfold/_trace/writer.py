"""From what a traced function wrote down to the text of a program."""
from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from starfold._errors import ProgramError
from starfold._trace.ops import operation_names
from starfold._trace.tensor import ATOM, Block, Place, Tensor, Tracer

KEYWORDS = {"import", "size", "input", "fn", "let", "state", "repeat", "until", "trace", "output", "keep", "private", "each", "client", "batches", "and", "or",
            "not", "inf", "nan", "pi", "new"}


class Writer:
    """The text of a traced function, with the line of Python behind each of its lines."""

    def __init__(self, tracer: Tracer, names: Dict[int, str], taken: Sequence[str]):
        self.tracer, self.hints = tracer, names
        self.reserved = KEYWORDS | {name for name in operation_names() if name.isidentifier()}
        self.taken = set(taken)
        self.uses: Dict[int, List[Tuple[Block, int]]] = {}
        self.must: set = set()
        self.lines: List[Tuple[str, Optional[Place]]] = []
        self.final: Dict[int, str] = {}
        self.only_output: set = set()

    def count_uses(self, block: Block) -> None:
        seen: set = set()

        def use(tensor: Tensor, where: Block, seq: int) -> None:
            if not where.inside(tensor.block) and tensor.kind not in ("literal", "input"):
                raise ProgramError("a value that is made inside a loop is used outside: make it a state", where=str(tensor.place))
            self.uses.setdefault(id(tensor), []).append((where, seq))
            if id(tensor) in seen:
                return
            seen.add(id(tensor))
            for i, arg in enumerate(tensor.args):
                use(arg, tensor.block, tensor.seq)
                if i in tensor.by_name:
                    self.must.add(id(arg))

        def walk(own: Block) -> None:
            for seq, item in own.items:
                if not isinstance(item, tuple):
                    continue
                if item[0] == "repeat":
                    use(item[1].count, own, seq)
                    walk(item[1].block)
                    if item[1].condition is not None:
                        use(item[1].condition, item[1].block, 1 << 60)
                else:
                    use(item[2], own, seq)
        walk(block)

    def is_let(self, tensor: Tensor) -> bool:
        uses = self.uses.get(id(tensor))
        if tensor.kind == "several":
            return any(id(part) in self.uses for part in tensor.group)
        if tensor.kind != "value" or not uses:
            return False
        if len(uses) > 1 or id(tensor) in self.must:
            return True
        block, seq = uses[0]
        if block is not tensor.block or any(tensor.seq < update < seq for update in block.updates):
            return True
        named = tensor.name or self.hints.get(id(tensor))
        return named is not None and id(tensor) not in self.only_output

    def name_of(self, tensor: Tensor) -> str:
        if tensor.kind == "input":
            return tensor.name
        known = self.final.get(id(tensor))
        if known is None:
            wanted = tensor.name or self.hints.get(id(tensor)) or "t"
            wanted = re.sub(r"\W", "_", wanted)
            known, number = wanted, 2
            if wanted == "t" or wanted in self.reserved:
                known, number = f"{wanted}1", 2
            while known in self.taken or known in self.reserved:
                known, number = f"{wanted}{number}" if wanted == "t" else f"{wanted}_{number}", number + 1
            self.taken.add(known)
            self.final[id(tensor)] = known
        return known

    def text(self, tensor: Tensor) -> Tuple[str, int]:
        if tensor.kind in ("input", "state", "part") or self.is_let(tensor):
            return self.name_of(tensor), ATOM
        return self.expression(tensor), tensor.level

    def expression(self, tensor: Tensor) -> str:
        return tensor.write(*(self.text(arg) for arg in tensor.args))

    def say(self, depth: int, text: str, place: Optional[Place]) -> None:
        self.lines.append(("  " * depth + text, place))

    def write_block(self, block: Block, depth: int) -> None:
        for _, item in sorted(block.items, key=lambda pair: pair[0]):
            if isinstance(item, Tensor):
                if not self.is_let(item):
                    continue
                if item.kind == "several":
                    names = ", ".join(self.name_of(part) if id(part) in self.uses else "_" for part in item.group)
                    self.say(depth, f"let ({names}) = {self.expression(item)}", item.place)
                else:
                    self.say(depth, f"let {self.name_of(item)} = {self.expression(item)}", item.place)
                continue
            kind = item[0]
            if kind == "state":
                _, tensor, first, type_text, place = item
                self.say(depth, f"state {self.name_of(tensor)}{' : ' + type_text if type_text else ''} = {self.text(first)[0]}", place)
            elif kind == "update":
                self.say(depth, f"{self.name_of(item[1])} <- {self.text(item[2])[0]}", item[3])
            elif kind == "trace":
                self.say(depth, f"trace {item[1]} = {self.text(item[2])[0]}", item[3])
            elif kind in ("output", "keep"):
                written = self.text(item[2])[0]
                self.say(depth, f"{kind} {item[1]}" + (f" = {written}" if written != item[1] or item[2].kind == "literal" else ""), item[3])
            else:
                loop = item[1]
                self.say(depth, f"repeat {self.text(loop.count)[0]} {{", loop.place)
                self.write_block(loop.block, depth + 1)
                self.say(depth, "}" + (f" until {self.text(loop.condition)[0]}" if loop.condition is not None else ""),
                         loop.condition.place if loop.condition is not None else loop.place)


def written(tracer: Tracer, head, hints: Dict[int, str], names: Sequence[str]) -> Tuple[str, Dict[int, Place]]:
    writer = Writer(tracer, hints, names)
    writer.count_uses(tracer.body)
    writer.only_output = {id(item[2]) for _, item in walk_items(tracer.body)
                          if isinstance(item, tuple) and item[0] == "output" and len(writer.uses.get(id(item[2]), [])) == 1
                          and (item[2].name or hints.get(id(item[2]))) == item[1]}
    writer.lines = [(f"import {module}", None) for module in sorted(tracer.imports)] + list(head)
    writer.write_block(tracer.body, 0)
    text = "\n".join(line for line, _ in writer.lines) + "\n"
    return text, {number: place for number, (_, place) in enumerate(writer.lines, 1) if place is not None}


def walk_items(block: Block):
    for seq, item in block.items:
        yield seq, item
        if isinstance(item, tuple) and item[0] == "repeat":
            yield from walk_items(item[1].block)
