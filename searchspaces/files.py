"""Search space files: finding, reading and checking them, and what holds for a task in them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from searchspaces.distributions import Distribution, Scalar, parse
from searchspaces.space import Assignment, Space

FOLDER = Path(__file__).parent


class SpaceError(ValueError):
    """A search space that cannot be found or read; the message names file, key and reason."""


@dataclass(frozen=True)
class SpaceFile:
    """One YAML file: the spaces of one method."""

    name: str
    path: Path
    method: str
    sections: dict[str, dict[str, Any]]

    def section(self, wanted: str | None, preferred: Iterable[str]) -> str:
        """The name of the section to use: the one wanted, else the first preferred, else any."""
        if wanted is not None:
            if wanted not in self.sections:
                raise SpaceError(
                    f"{self.path.name} has no section {wanted!r}; it has {', '.join(self.sections)}"
                )
            return wanted
        return next(
            (name for name in preferred if name in self.sections), next(iter(self.sections))
        )

    def space(self, section: str, *, task: str, family: str, backbone: str = "") -> Space:
        """The space of a section for one task, family and backbone, its `when` parts applied."""
        definition = self.sections[section]
        merged: dict[str, dict[str, Any]] = {
            "space": dict(definition.get("space", {})),
            "training": dict(definition.get("training", {})),
        }
        seeds = definition.get("seeds")
        for case in definition.get("when", ()):
            if _applies(case, task=task, family=family, backbone=backbone):
                seeds = case.get("seeds", seeds)
                for part in merged:
                    merged[part] |= case.get(part, {})
        where = f"{self.path.name}, section {section!r}"
        tied = _tied(where, merged["space"].pop("tied", ()))
        free = {key: _distribution(where, key, value) for key, value in merged["space"].items()}
        doubled = [key for group in tied for key in group[0] if key in free]
        if doubled:
            raise SpaceError(f"{where}, key {doubled[0]!r}: it is both tied and free")
        return Space(
            method=self.method,
            name=f"{self.name}@{section}",
            source=str(definition.get("source", "")),
            free=free,
            tied=tied,
            training=merged["training"],
            seeds=seeds,
        )


def known_spaces() -> list[str]:
    """Names of the spaces that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name_or_path: str) -> SpaceFile:
    """The space file of that name, or at that path if it looks like one."""
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise SpaceError(f"no search space file {name_or_path}")
    elif name_or_path in known_spaces():
        path = FOLDER / f"{name_or_path}.yaml"
    else:
        raise SpaceError(
            f"no search space named {name_or_path!r}; known: {', '.join(known_spaces())}; "
            f"or give a file, as in ./mine.yaml"
        )
    return _check(path, _read(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or "not UTF-8 text"
        raise SpaceError(f"{path.name}{place}: {reason}") from error
    if not isinstance(content, dict):
        raise SpaceError(f"{path.name}: needs the keys method and sections")
    return content


_SECTION_KEYS = {"source", "space", "training", "seeds", "when"}
_CASES = ("task", "family", "backbone")
"""What a `when` case may depend on, each a list of names."""


def _check(path: Path, content: dict[str, Any]) -> SpaceFile:
    sections = content.get("sections")
    if sections is None and "space" in content:
        sections = {"own": {key: content[key] for key in _SECTION_KEYS if key in content}}
        content = {key: content[key] for key in content.keys() - _SECTION_KEYS}
    _known_keys(path.name, content, {"method", "sections"})
    if not isinstance(content.get("method"), str):
        raise SpaceError(f"{path.name}, key 'method': needs the name of a method")
    if not isinstance(sections, dict) or not sections:
        raise SpaceError(f"{path.name}, key 'sections': needs at least one section with a space")
    file = SpaceFile(path.stem, path, content["method"], sections)
    for name, definition in sections.items():
        _check_section(f"{path.name}, section {name!r}", definition)
        file.space(name, task="", family="")
        for case in definition.get("when", ()):
            _check_case(file, name, case)
    return file


def _check_section(where: str, definition: object) -> None:
    if not isinstance(definition, dict):
        raise SpaceError(f"{where}: needs the key space")
    _known_keys(where, definition, _SECTION_KEYS)
    for key in ("space", "training"):
        if not isinstance(definition.get(key, {}), dict):
            raise SpaceError(f"{where}, key {key!r}: needs names with values")
    if not isinstance(definition.get("seeds", 1), int) or definition.get("seeds", 1) < 1:
        raise SpaceError(f"{where}, key 'seeds': needs a number from 1, got {definition['seeds']}")
    if not isinstance(definition.get("when", []), list):
        raise SpaceError(f"{where}, key 'when': needs a list of cases")


def _check_case(file: SpaceFile, section: str, case: object) -> None:
    where = f"{file.path.name}, section {section!r}, key 'when'"
    if not isinstance(case, dict):
        raise SpaceError(f"{where}: needs task, family or backbone, and space or training")
    _known_keys(where, case, {*_CASES, "space", "training", "seeds"})
    for key in _CASES:
        if key in case and not (isinstance(case[key], list) and case[key]):
            raise SpaceError(f"{where}: {key} needs a list of names, got {case[key]!r}")
    if not case.keys() & set(_CASES):
        raise SpaceError(f"{where}: a case needs task, family or backbone")
    file.space(section, **{key: case.get(key, [""])[0] for key in _CASES})


def _known_keys(where: str, content: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(str(key) for key in content.keys() - known)
    if unknown:
        raise SpaceError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _applies(case: dict[str, Any], **names: str) -> bool:
    return all(name in case.get(key, [name]) for key, name in names.items())


def _distribution(where: str, key: str, definition: object) -> Distribution:
    try:
        return parse(definition)
    except ValueError as error:
        raise SpaceError(f"{where}, key {key!r}: {error}") from error


def _tied(where: str, groups: object) -> tuple[tuple[Assignment, ...], ...]:
    if not isinstance(groups, list | tuple):
        raise SpaceError(f"{where}, key 'tied': needs a list of groups")
    tied = []
    for group in groups:
        if not isinstance(group, dict) or not group:
            raise SpaceError(f"{where}, key 'tied': a group needs names with lists of values")
        columns = {key: _column(where, key, values) for key, values in group.items()}
        lengths = {key: len(values) for key, values in columns.items()}
        if len(set(lengths.values())) != 1:
            raise SpaceError(f"{where}, key 'tied': lists must have equal lengths, got {lengths}")
        rows = zip(*columns.values(), strict=True)
        tied.append(tuple(dict(zip(columns, row, strict=True)) for row in rows))
    return tuple(tied)


def _column(where: str, key: str, values: object) -> tuple[Scalar, ...]:
    cells = _distribution(where, key, {"choice": values}).cells()
    assert cells is not None
    return cells


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, refusing a key that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key_node.value!r} stands twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)
