"""How to cite this software: valid, in step with the project, and nobody is invented."""

from __future__ import annotations

import tomllib

import pytest

from tests.support.program import ROOT


def test_the_citation_file_has_what_its_format_demands_and_agrees_with_the_project() -> None:
    yaml = pytest.importorskip("yaml")
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"authors", "cff-version", "message", "title"} <= said.keys()
    assert said["cff-version"] == "1.2.0"
    assert said["type"] == "software"
    assert str(said["version"]) == project["version"]
    assert said["license"] == project["license"]


def test_no_person_address_or_identifier_is_made_up() -> None:
    yaml = pytest.importorskip("yaml")
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert said["authors"] == [{"name": "The Cloud War Room authors"}]
    assert not {"doi", "url", "repository-code", "identifiers", "date-released"} & said.keys()
