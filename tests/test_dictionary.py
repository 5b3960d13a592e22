"""The dictionary: every entry resolves, cites its number back, and no number is cited that it does not have."""

import inspect
import re
import sys
from pathlib import Path

import pytest

from symsvm.paper.dictionary import EQUATIONS, OTHERS, SYMBOLS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import dictionary as generator  # noqa: E402  (docs/dictionary.py)

# "Eq. 21", "Eq. 9, 11", "Eq. 22 to 26"; equations of other documents are cited as "Eq. 002:1.26".
CITATION = re.compile(r"Eq\. (\d+(?!\d*:)(?:(?:, | to | and )\d+)*)")


def cited(text):
    """Return the numbers that a text cites."""
    numbers = set()
    for match in CITATION.finditer(text):
        parts = re.split(r"(, | to | and )", match.group(1))
        last = int(parts[0])
        numbers.add(last)
        for separator, number in zip(parts[1::2], parts[2::2], strict=True):
            numbers |= set(range(last, int(number) + 1)) if separator == " to " else {int(number)}
            last = int(number)
    return numbers


# "Eq. 001:7, 001:8", "Eq. 001:2 to 001:4".
FURTHER = re.compile(r"Eq\. (\d{3}:[\d.]*\d(?:(?:, | to | and )\d{3}:[\d.]*\d)*)")


def cited_elsewhere(text):
    """Return the equations of other documents that a text cites."""
    numbers = set()
    for match in FURTHER.finditer(text):
        parts = re.split(r"(, | to | and )", match.group(1))
        numbers.add(parts[0])
        for before, separator, number in zip(parts[0::2], parts[1::2], parts[2::2], strict=False):
            document, first = before.split(":")
            between = range(int(first), int(number.split(":")[1])) if separator == " to " else ()
            numbers |= {number, *(f"{document}:{k}" for k in between)}
    return numbers


@pytest.mark.parametrize("number", OTHERS)
def test_other_equations_resolve_are_cited_back_and_stand_on_the_page(number):
    for name in OTHERS[number].code:
        assert number in cited_elsewhere(inspect.getdoc(generator.resolve(name))), f"{name} does not cite {number}"
    page = (ROOT / "docs" / generator.home(number)).read_text(encoding="utf-8")
    assert f"\\tag{{{number}}}" in page


def test_the_page_of_other_equations_names_their_code():
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    sections = re.split(r'<a id="eq-[\d-]+"></a>\n', page)[1:]
    for section in sections:
        number, title = re.match(r"### Eq\. (\d{3}:[\d.]+): (.*)", section).groups()
        links = ", ".join(map(generator.link, OTHERS[number].code))
        assert title == OTHERS[number].title
        assert f"\\tag{{{number}}}" in section
        assert f"\nCode: {links}\n" in section, f"the code line of Eq. {number} is not {links}"
    assert len(sections) == len({n for n in OTHERS if generator.home(n) == "equations.md"})


def test_every_number_of_the_other_documents_has_code_or_a_reason():
    """004 numbers nothing, 005 is docs/deep.md. 1.4 is not equivalent, 2.1 no statement, 2.8 and 27 are steps."""
    ends = {"001:": 11, "002:1.": 31, "002:2.": 18, "002:3.": 4, "002:7.": 7, "003:": 30, "005:": 7}
    numbered = {f"{part}{k}" for part, end in ends.items() for k in range(1, end + 1)} | {"002:1"}
    assert numbered - set(OTHERS) == {"002:1.4", "002:2.1", "002:2.8", "003:27"}
    assert set(OTHERS) <= numbered


def test_citations_of_other_documents_are_in_the_dictionary():
    assert cited_elsewhere("(Eq. 001:2 to 001:4), Eq. 002:1.7, 002:1.8") == {
        "001:2",
        "001:3",
        "001:4",
        "002:1.7",
        "002:1.8",
    }
    for path in sorted((ROOT / "symsvm").rglob("*.py")):
        assert cited_elsewhere(path.read_text(encoding="utf-8")) <= set(OTHERS), path


def test_citations_are_read():
    assert cited("see Eq. 9, 11 and 12; (Eq. 22 to 26), not Eq. 002:1.26") == {9, 11, 12, 22, 23, 24, 25, 26}
    assert cited("Eq. 7 to 9, 18 to 20") == {7, 8, 9, 18, 19, 20}


@pytest.mark.parametrize("number", EQUATIONS)
def test_equation_resolves_and_is_cited_back(number):
    for name in EQUATIONS[number].code:
        assert number in cited(inspect.getdoc(generator.resolve(name))), f"{name} does not cite Eq. {number}"


@pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: symbol.name)
def test_symbol_resolves(symbol):
    assert inspect.getdoc(generator.resolve(symbol.code))


def test_a_wrong_name_does_not_resolve():
    with pytest.raises((LookupError, AttributeError)):
        generator.resolve("objectives.dual.nothing")


TEXTS = [
    path
    for pattern in ("symsvm/**/*.py", "examples/*.py", "benchmarks/*.py", "tests/*.py", "docs/*.md", "*.md")
    for path in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_citation_is_in_the_dictionary(path):
    assert cited(path.read_text(encoding="utf-8")) <= set(EQUATIONS)


def test_all_33_equations_stand_on_the_page_with_number_anchor_and_code():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert re.findall(r'<a id="eq-(\d+)"></a>\n### Eq\. (\d+): ', page) == [(str(n), str(n)) for n in range(1, 34)]
    assert re.findall(r"\\tag\{(\d+)\}", page) == [str(n) for n in range(1, 34)]
    sections = re.split(r'<a id="eq-\d+"></a>\n', page)[1:]
    for number, section in enumerate(sections, 1):
        links = ", ".join(map(generator.link, EQUATIONS[number].code))
        assert f"\nCode: {links}\n" in section, f"the code line of Eq. {number} is not {links}"
    assert page.count("> **Erratum.**") >= 15


def test_the_generated_page_is_current():
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run make docs"
