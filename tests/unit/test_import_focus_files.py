"""How a bill may be written, and what is said when it is no bill."""

from __future__ import annotations

import gzip
import os
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.bills import bill_text, usage, write_bill
from world.errors import ConfigError, ImportFileError
from world.importers.focus import import_focus, write_metrics_template
from world.scenarios.loader import read_scenario

TWO = (usage(), usage(ResourceId="i-0002", EffectiveCost="3"))


def total(path: Path) -> Decimal:
    report = import_focus(path)
    assert (report.rows, report.mapped, report.skipped) == (2, 2, {})
    return report.total_mapped


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_by_the_columns_it_makes(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(bill_text(TWO, delimiter=delimiter), encoding="utf-8")
    assert total(path) == 4


@pytest.mark.parametrize("name", ["bill.csv", "bill.csv.gz", "bill.txt", "gzip-without-suffix"])
def test_gzip_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(bill_text(TWO).encode()))
    assert total(path) == 4


def test_plain_text_named_gz_is_read_as_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv.gz"
    path.write_text(bill_text(TWO), encoding="utf-8")
    assert total(path) == 4


def test_byte_order_marks_are_dropped_before_the_header_and_inside(tmp_path: Path) -> None:
    header, *rows = bill_text(TWO).splitlines()
    path = tmp_path / "bill.csv"
    path.write_text("\ufeff" + header + "\n\ufeff" + "\n".join(rows), encoding="utf-8")
    assert total(path) == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_read(tmp_path: Path, end: str) -> None:
    path = tmp_path / "bill.csv"
    path.write_bytes(bill_text(TWO).replace("\n", end).encode())
    assert total(path) == 4


def test_utf16_with_a_mark_a_sep_line_and_trailing_delimiters_are_read(tmp_path: Path) -> None:
    header, *rows = bill_text(TWO, delimiter=";").splitlines()
    text = "\n".join(["sep=;", header, *(f"{row};;" for row in rows)])
    path = tmp_path / "bill.csv"
    path.write_bytes(text.encode("utf-16"))
    assert total(path) == 4


def test_a_line_break_inside_a_field_is_part_of_the_field(tmp_path: Path) -> None:
    path = write_bill(tmp_path, *TWO, usage(ChargeDescription="two\nlines", ResourceId="i-3"))
    report = import_focus(path)
    assert (report.rows, report.mapped) == (3, 3)


def test_an_escape_code_or_line_break_in_an_id_is_spelled_out(tmp_path: Path) -> None:
    path = write_bill(tmp_path, usage(ResourceId="evil\x1b[31m\nid\u2028\u202e"))
    scenario = read_scenario(Path(str(import_focus(path, output=tmp_path / "o.toml").scenario)))
    assert scenario.resources["id"] == ("evil\\x1b[31m\\x0aid\\u2028\\u202e",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (bill_text([]).encode(), "has a header and no rows"),
        (b"a,b\x00c\n1,2\n", "NUL"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b'{"rows": []}', "is JSON"),
        (b"\xff\xd8\xff\xe0 a picture", "is not UTF-8"),
        (gzip.compress(bill_text(TWO).encode())[:-20], "damaged gzip"),
        (b"\x1f\x8bnot really gzip", "damaged gzip"),
        (gzip.compress(gzip.compress(bill_text(TWO).encode())), "is not UTF-8"),
        (b"x" * (1 << 21), "more than 1,048,576 characters"),
    ],
)
def test_a_file_that_is_no_bill_is_refused_in_one_line(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "bill.csv"
    path.write_bytes(content)
    with pytest.raises(ImportFileError, match=words) as refused:
        import_focus(path, output=tmp_path / "out.toml")
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == [path]


def test_a_gzip_that_unpacks_beyond_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv"
    line = b"x" * 1023 + b"\n"
    path.write_bytes(gzip.compress(bill_text(TWO).encode() + line * (80 << 10)))
    with pytest.raises(ImportFileError, match="times its size"):
        import_focus(path)


def test_missing_columns_are_named_with_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv"
    path.write_text("lineItem/UnblendedCost,identity/LineItemId\n1,2\n", encoding="utf-8")
    with pytest.raises(ImportFileError) as refused:
        import_focus(path)
    text = str(refused.value)
    for word in ("EffectiveCost", "ChargeCategory", "ResourceId", "lineItem/UnblendedCost"):
        assert word in text


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(bill_text(TWO).replace("ListCost", "EffectiveCost", 1), encoding="utf-8")
    with pytest.raises(ImportFileError, match="EffectiveCost twice"):
        import_focus(path)


def test_folders_missing_files_and_pipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="is a folder"):
        import_focus(tmp_path)
    with pytest.raises(ImportFileError, match="there is no file"):
        import_focus(tmp_path / "absent.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ImportFileError, match="not a regular file"):
        import_focus(tmp_path / "pipe")


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = write_bill(tmp_path, *TWO)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ImportFileError, match="cannot be read"):
        import_focus(path)


def test_an_import_overwrites_an_earlier_scenario_and_nothing_else(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, *TWO)
    output = tmp_path / "new" / "out.toml"
    import_focus(bill, output=output)
    first = output.read_bytes()
    import_focus(bill, output=output)
    assert output.read_bytes() == first
    foreign = tmp_path / "notes.toml"
    foreign.write_text("mine = true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no scenario file"):
        import_focus(bill, output=foreign)
    with pytest.raises(ConfigError, match="input of this import"):
        import_focus(bill, output=bill)
    with pytest.raises(ConfigError, match="is a folder"):
        import_focus(bill, output=tmp_path)
    with pytest.raises(ConfigError, match="is the bill"):
        write_metrics_template(bill, bill)
    assert foreign.read_text(encoding="utf-8") == "mine = true\n"
    assert sorted(path.name for path in output.parent.iterdir()) == ["out.toml"]


def test_somebody_elses_csv_beside_the_scenario_is_not_overwritten(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, *TWO)
    (tmp_path / "out.resources.csv").write_text("mine\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no inventory"):
        import_focus(bill, output=tmp_path / "out.toml")


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, *TWO)
    with pytest.raises(ConfigError, match="cannot be written"):
        import_focus(bill, output=bill / "below" / "out.toml")


def test_a_large_inventory_stands_in_a_csv_beside_and_loads_the_same(tmp_path: Path) -> None:
    rows = [usage(ResourceId=f"{number:05d}", ResourceName=str(number)) for number in range(501)]
    bill = write_bill(tmp_path, *rows, name="big.csv.gz")
    output = tmp_path / "big.toml"
    import_focus(bill, output=output)
    first = read_scenario(output)
    assert (tmp_path / "big.resources.csv").is_file()
    assert len(first.resources["id"]) == 501
    assert first.resources["id"][0] == "00000"
    contents = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    import_focus(bill, output=output)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == contents
    assert read_scenario(output).digest == first.digest


def test_the_same_bill_packed_or_not_gives_the_same_scenario(tmp_path: Path) -> None:
    plain = write_bill(tmp_path, *TWO)
    packed = write_bill(tmp_path, *TWO, name="bill.csv.gz")
    import_focus(plain, output=tmp_path / "a.toml")
    import_focus(packed, output=tmp_path / "b.toml")
    assert (tmp_path / "a.toml").read_bytes() == (tmp_path / "b.toml").read_bytes()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_cell_of_many_lines_is_one_record_whatever_it_holds(tmp_path: Path, end: str) -> None:
    text = 'first, "quoted"\n\n  i-9,Usage,99\n' + "more;\n" * 900
    tags = '{\n  "environment": "staging",\n  "essential": "yes"\n}'
    odd = usage(ResourceId="i-3", ChargeDescription=text, Tags=tags)
    path = tmp_path / "bill.csv"
    path.write_bytes(bill_text([TWO[0], odd, TWO[1]]).replace("\n", end).encode())
    report = import_focus(path, output=tmp_path / "out.toml")
    assert (report.rows, report.mapped, report.skipped) == (3, 3, {})
    resources = read_scenario(tmp_path / "out.toml").resources
    row = resources["id"].index("i-3")
    assert resources["environment"][row] == "staging"
    assert resources["essential"][row] == "yes"


def test_a_quote_that_never_closes_takes_a_bounded_number_of_lines(tmp_path: Path) -> None:
    header, row = bill_text([usage(Tags="")]).splitlines()
    lines = [header, row, f'"{row}', *[row] * 1500]
    path = tmp_path / "bill.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = import_focus(path)
    ((reason, count),) = report.skipped.items()
    assert reason.startswith("a quote is still open after 1,000 lines or 131,072 characters")
    assert "in the record of lines 3 to " in reason
    assert count <= 1000
    assert report.mapped == 1 + 1501 - count
    assert not report.reconciled


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ('"open,\nto the\nend\n', "a quote never closes in the record of lines 4 to 6"),
        ('"closed" early,\n', "quotes are broken in line 4"),
        ('"two\nlines" early,\n', "quotes are broken in the record of lines 4 to 5"),
        ("a\rb,\n", "a carriage return stands outside quotes in line 4"),
        (f'"{"x" * 140_000}"\n', "a field is longer than 131,072 characters in line 4"),
    ],
)
def test_what_cannot_be_split_says_why_and_where(tmp_path: Path, broken: str, reason: str) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(bill_text(TWO) + broken, encoding="utf-8", newline="")
    assert import_focus(path).skipped == {reason: broken.count("\n")}


def test_only_the_first_faults_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(bill_text(TWO) + '"a"b\n' * 100, encoding="utf-8")
    skipped = import_focus(path).skipped
    assert len(skipped) == 9
    assert skipped["quotes are broken"] == 92
