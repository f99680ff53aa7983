"""From YAML nodes to the model: each function reads one noun and reports what is wrong with its text.

Reading goes on after a fault, so that one run reports them all. The part of an operator that has a fault is
`broken`; checks that would need it keep quiet, so that one fault is one diagnostic. What several operators
share by aliases is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import chains, faults, grammar, vocabulary
from .checks import check
from .diagnostics import Diagnostic, Source, has_errors, in_order
from .draft import Document, Draft
from .entries import Entries, Entry, Nameless, entry_of
from .includes import FileLoader, LoadedFile
from .kernel_headers import KernelHeaders
from .loader import PARSER, Node, Scalar, Sequence, paused_collector, read_source
from .model import Attribute, Case, Op, Row, Schema, Symbol, Tensor
from .outline import outline
from .parts import PartReader
from .source_files import SourceFiles
from .spans import Span
from .suggestions import bounded_guesses, nearest
from .text import NO_TEXT

P = ParamSpec("P")
T = TypeVar("T")

_NO_PARAMETERS = dict.fromkeys(vocabulary.TYPES)
_TYPE_PARAMETER = re.compile(r"T[0-9]*\Z")


def load_schema(path: Path) -> tuple[Schema | None, list[Diagnostic]]:
    """Reads and checks a schema. It is None where there are errors; warnings may come with it."""
    source, diagnostics = read_source(path)
    return (None, diagnostics) if diagnostics else load_source(source)


def load_source(
    source: Source, parser: Any = PARSER, headers: KernelHeaders | None = None
) -> tuple[Schema | None, list[Diagnostic]]:
    """Reads and checks a schema's text. Its kernels are in the headers: the runtime's, unless given."""
    with paused_collector(), bounded_guesses():
        headers = headers or KernelHeaders()
        document, loader = _read(source, parser, headers)
        schema = None
        if document:
            schema, findings = check(document, headers, loader.diagnostics)
            loader.diagnostics += findings
        diagnostics = loader.located(in_order(loader.diagnostics))
        return (None if has_errors(diagnostics) else schema), diagnostics


def check_document(source: Source) -> tuple[Document | None, list[Diagnostic]]:
    """Reads and checks a schema's text, but for what the headers of kernels say, so that it may be of kernels
    that there are no more. None where there are errors."""
    with paused_collector(), bounded_guesses():
        headers = KernelHeaders(())
        document, loader = _read(source, PARSER, headers)
        if document:
            loader.diagnostics += check(document, headers)[1]
        diagnostics = loader.located(in_order(loader.diagnostics))
        return (None if has_errors(diagnostics) else document), diagnostics


def read_document(source: Source) -> tuple[Document | None, list[Diagnostic]]:
    """Reads a schema's text and does not check it. None where it does not read."""
    with paused_collector(), bounded_guesses():
        document, loader = _read(source, PARSER, KernelHeaders())
        diagnostics = loader.located(in_order(loader.diagnostics))
        return (None if has_errors(diagnostics) else document), diagnostics


def _read(source: Source, parser: Any, headers: KernelHeaders) -> tuple[Document | None, FileLoader]:
    loader = FileLoader(parser)
    loader.load(source, PurePath(source.path).name)
    diagnostics = loader.diagnostics
    if loader.failed:
        return None, loader
    diagnostics += _outlined(loader.files, diagnostics)
    reader = _DocumentReader(headers)
    document = reader.documents(loader)
    diagnostics += reader.diagnostics
    return document, loader


def _outlined(files: Iterable[LoadedFile], found: list[Diagnostic]) -> list[Diagnostic]:
    """Where an alias repeats something else than is meant, an anchor that none repeats is no fault of its
    own."""
    diagnostics = outline(files)
    if any(diagnostic.id == faults.WRONG_ALIAS for diagnostic in diagnostics):
        found[:] = [diagnostic for diagnostic in found if diagnostic.id != faults.UNUSED_ANCHOR]
    return diagnostics


class _DocumentReader(PartReader):
    def __init__(self, headers: KernelHeaders) -> None:
        super().__init__(headers)
        self._domains: dict[int, Span] = {}  # where documents, by their ids, say theirs

    def documents(self, loader: FileLoader) -> Document | None:
        """A schema with the operators of all its files, in the order of their lines. None where one has not
        the top level of a schema, or that of another version's."""
        files = loader.source_files()
        found = [self._of_file(file, files) for file in loader.files]
        documents = [document for document in found if document]
        if len(documents) < len(found):
            return None
        *included, own = documents
        for other in included:
            if other.domain and own.domain and other.domain != own.domain:
                self.report(faults.other_domain(self._domains[id(other)], other.domain, own.domain))
            if other.since_version != own.since_version:
                _keep_version(other)
        own.drafts[:0] = [draft for other in included for draft in other.drafts]
        return own

    def _of_file(self, file: LoadedFile, files: SourceFiles) -> Document | None:
        known = len(self.diagnostics)
        document = self._document(file.root, files)
        self.diagnostics[known:] = [
            one if one.span or file.source.path == files.own.path else replace(one, source=file.source)
            for one in self.diagnostics[known:]
        ]
        return document

    def _document(self, root: Node | None, files: SourceFiles) -> Document | None:
        if root is None or (isinstance(root, Scalar) and not root.value):
            self.report(faults.empty_document(root.span if root else None))
            return None
        before = self.fault_count
        entries = self.entries(root, "the schema")
        if not entries and self.fault_count != before:
            return None
        version = self._version(entries)
        if version not in (None, vocabulary.SCHEMA_VERSION):
            return None
        self.known_keys(entries, "the schema", Nameless(root, entries), _keys_of_file(entries))
        if "include" in entries:
            self._include(entries["include"][1])
        if "shared" in entries:
            self.entries(entries["shared"][1], "'shared'")
        drafts = self._ops(entries["ops"][1]) if "ops" in entries else []
        document = Document(files, version or 0, self._domain(entries), self._since_version(entries), drafts)
        if document.domain:
            self._domains[id(document)] = entries["domain"][1].span
        return document

    def _include(self, node: Node) -> None:
        if not self.words(node, "'include'") and type(node) is Sequence and not node.items:
            self.report(faults.nothing_there(node.span, "'include'", "file"))

    def _version(self, entries: Entries) -> int | None:
        if "schema_version" not in entries:
            return None
        node = entries["schema_version"][1]
        version = self.integer(node, "'schema_version'")
        if version not in (None, vocabulary.SCHEMA_VERSION):
            self.report(faults.unsupported_version(node.span, version, vocabulary.SCHEMA_VERSION))
        return version

    def _domain(self, entries: Entries) -> str:
        if "domain" not in entries:
            return ""
        node = entries["domain"][1]
        domain = self.text(node, "'domain'")
        if domain and not grammar.is_domain(domain):
            self.report(faults.bad_domain(node.span, domain))
        return domain

    def _since_version(self, entries: Entries) -> int:
        return self.since_version(entries["since_version"][1], "") if "since_version" in entries else 0

    def _ops(self, node: Node) -> list[Draft]:
        items = self.items(node, "'ops'", "a list of operators")
        if type(node) is Sequence and not items:
            self.report(faults.nothing_there(node.span, "the schema", "operator"))
        aliases = node.aliases if type(node) is Sequence else {}
        drafts = [self._op(item, aliases.get(index)) for index, item in enumerate(items)]
        return [draft for draft in drafts if draft]

    def _op(self, node: Node, alias: Span | None) -> Draft | None:
        before = self.fault_count
        entries = self.entries(node, "an operator")
        sound = entries or self.fault_count == before
        return _OpReader(self, node, entries, alias).draft() if sound else None


class _OpReader:
    """Reads one operator's entry, and notes which of its parts have faults."""

    def __init__(self, reader: PartReader, node: Node, entries: Entries, alias: Span | None) -> None:
        self._reader = reader
        self._node = node
        self._alias = alias
        self._entries = entries
        self._broken: set[str] = set()
        self._owner = "this operator"
        self._origin: Entry = Nameless(node, entries)

    def draft(self) -> Draft:
        reader, part = self._reader, self._part
        name = part("name", reader.name, "")
        if name:
            self._owner = f"operator '{name}'"
            self._origin = entry_of(self._node, self._entries, self._alias)
        self._broken |= reader.known_keys(self._entries, self._owner, self._origin, self._keys())
        no_tensors: tuple[Tensor, ...] = ()
        inputs = part("inputs", reader.inputs, no_tensors)
        outputs = part("outputs", reader.outputs, no_tensors)
        inputs, outputs = _with_like_shapes(inputs, outputs)
        no_symbols: dict[str, Symbol] = {}
        declared = part("dims", reader.dims, no_symbols)
        no_attributes: tuple[Attribute, ...] = ()
        attributes = part("attributes", reader.attributes, no_attributes)
        declared = _with_axes(declared, attributes)
        no_rows: tuple[Row, ...] = ()
        rows = part("rows", reader.rows, no_rows)
        self._check_types(inputs + outputs, rows)
        op = Op(
            name=name,
            doc=part("doc", reader.op_doc, NO_TEXT),
            origin=self._origin,
            line=self._node.line,
            kernel=part("kernel", reader.kernel, ""),
            backends=part("backends", reader.backends, ()),
            inputs=inputs,
            outputs=outputs,
            symbols=_symbols(inputs + outputs, declared),
            attributes=attributes,
            rows=rows,
            cases=self._cases(name, inputs + outputs, attributes),
            gradient_of=part("gradient_of", reader.forward, ""),
            repeatable=part("repeatable", reader.repeatable, ()),
            formulas=part(
                "formulas",
                reader.formulas,
                (),
                tensors=inputs + outputs,
                declared=declared,
                attributes=attributes,
            ),
            operations=part("operations", reader.operations, None),
            seams=part("seams", reader.seams, ()),
            since_version=part("since_version", reader.since_version, 0),
            history=part("history", reader.history, ()),
            special_values=part("special_values", reader.special_values, ()),
        )
        return Draft(_with_ordered_rows(op), self._broken, declared)

    def _keys(self) -> vocabulary.Keys:
        """A kernel computes it or formulas do, and not both."""
        entries, reader = self._entries, self._reader
        if "kernel" in entries:
            if "formulas" in entries:
                span = entries["kernel"][0].span
                remedy = "'formulas' say what it computes"
                reader.report(faults.key_not_for_kind(span, "kernel", self._owner, remedy))
                self._broken |= {"kernel", "formulas"}
                return vocabulary.OP_WITH_FORMULAS
            return vocabulary.OP
        unknown = [key for key in entries if key not in vocabulary.OP]
        has_formulas = "formulas" in entries or any(nearest(key, ["formulas"]) for key in unknown)
        return vocabulary.OP_WITH_FORMULAS if has_formulas else vocabulary.OP

    def _part(
        self,
        key: str,
        read: Callable[Concatenate[Node, str, P], T],
        default: T,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        if key not in self._entries:
            return default
        before = self._reader.fault_count
        value = read(self._entries[key][1], self._owner, *args, **kwargs)
        if self._reader.fault_count != before:
            self._broken.add(key)
        return value

    def _check_types(self, tensors: tuple[Tensor, ...], rows: tuple[Row, ...]) -> None:
        """A type is an element type, or a parameter: some row binds it, or it looks like one."""
        if "rows" in self._broken:
            return
        known = {parameter: None for row in rows for parameter, _ in row.types} | _NO_PARAMETERS
        for tensor in tensors:
            if tensor.type and tensor.type not in known and not _TYPE_PARAMETER.match(tensor.type):
                self._reader.report(faults.unknown_type(tensor.at("type"), tensor.type, known))
                self._broken.add("types")

    def _cases(
        self, name: str, tensors: tuple[Tensor, ...], attributes: tuple[Attribute, ...]
    ) -> tuple[Case, ...]:
        """Not read where it is not sure which keys a case may have."""
        if self._broken & {"inputs", "outputs", "attributes"}:
            return ()
        names = tuple(dict.fromkeys([tensor.name for tensor in tensors]))
        lists = frozenset([tensor.name for tensor in tensors if tensor.list])
        found = self._reader.diagnostics
        known = len(found)
        cases = self._part("cases", self._reader.cases, (), names, lists, attributes)
        found[known:] = [self._with_user(diagnostic, name) for diagnostic in found[known:]]
        return cases

    def _with_user(self, diagnostic: Diagnostic, name: str) -> Diagnostic:
        """What an alias repeats stands before the operator."""
        if not name or diagnostic.span is None or diagnostic.span.line >= self._node.line:
            return diagnostic
        return diagnostic.used_by(name, self._origin.span)


def _keys_of_file(entries: Entries) -> vocabulary.Keys:
    """A file may be there for the operators of others, or for what these have in common."""
    if "ops" in entries:
        return vocabulary.SCHEMA
    if "include" in entries:
        return vocabulary.SCHEMA_OF_OTHERS
    return vocabulary.SHARED_PARTS if "shared" in entries else vocabulary.SCHEMA


def _keep_version(document: Document) -> None:
    """Of operators that are of their own file's version, which is not that of the file that includes it."""
    for draft in document.drafts:
        if not draft.op.since_version:
            draft.op = replace(draft.op, since_version=document.since_version)


def _with_ordered_rows(op: Op) -> Op:
    """The rows get their types in the order of the op's type parameters; what is none of them comes last."""
    parameters = op.type_parameters
    if all(tuple([name for name, _ in row.types]) == parameters for row in op.rows):
        return op
    rank = {name: index for index, name in enumerate(parameters)}

    def ordered(row: Row) -> Row:
        return replace(row, types=tuple(sorted(row.types, key=lambda entry: rank.get(entry[0], len(rank)))))

    return replace(op, rows=tuple(map(ordered, op.rows)))


def _with_like_shapes(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Gives each tensor that is `like` another, or holds another's shape, the other's shape; none where there
    is no such tensor."""
    tensors = inputs + outputs
    if not any(tensor.shape_source for tensor in tensors):
        return inputs, outputs
    by_name = {tensor.name: tensor for tensor in reversed(tensors)}
    following = {
        name: tensor.shape_source for name, tensor in by_name.items() if tensor.shape_source in by_name
    }
    ends = chains.ends(following)

    def shaped(tensor: Tensor) -> Tensor:
        origin = by_name.get(ends.get(tensor.shape_source, tensor.shape_source), tensor)
        return tensor.shaped_like(origin) if tensor.shape_source else tensor

    return tuple(map(shaped, inputs)), tuple(map(shaped, outputs))


def _with_axes(declared: dict[str, Symbol], attributes: tuple[Attribute, ...]) -> dict[str, Symbol]:
    """A length that names no symbol may name an attribute, an axis before which the dims stand."""
    axes = {attribute.name for attribute in attributes if attribute.name not in declared}
    if not any(symbol.length_of in axes for symbol in declared.values()):
        return declared

    def resolved(symbol: Symbol) -> Symbol:
        is_axis = symbol.length_of in axes
        return replace(symbol, length_of="", length_axis=symbol.length_of) if is_axis else symbol

    return {name: resolved(symbol) for name, symbol in declared.items()}


def _symbols(tensors: tuple[Tensor, ...], declared: dict[str, Symbol]) -> tuple[Symbol, ...]:
    """In order of first use; a scalar symbol needs no declaration."""
    symbols: dict[str, Symbol] = {}
    for tensor in tensors:
        for dim, place in zip(tensor.shape, tensor.dim_places, strict=False):
            name = dim.symbol
            if name and name not in symbols:
                symbols[name] = declared.get(name) or Symbol(name, dim.is_list, Entry(place, {}))
    if not any(tensor.list for tensor in tensors):
        return tuple(symbols.values())
    shared = frozenset().union(*[tensor.shape.symbols for tensor in tensors if not tensor.list])
    return tuple([one if one.name in shared else replace(one, of_each=True) for one in symbols.values()])
