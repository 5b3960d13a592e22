"""Pictures of the documentation that scripts draw are current."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_pipeline_is_current(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import pipeline

    assert pipeline.PICTURE.read_text(encoding="utf-8") == pipeline.picture(), "run make docs"
    packages = [package for _, package, _ in (*pipeline.TOP, *filter(None, pipeline.BOTTOM))]
    folders = [name.strip() for package in packages for name in package.split(",")]
    folders += [name for name, _ in pipeline.USERS]
    for folder in folders:
        assert (DOCS.parent / "symsvm" / folder).is_dir(), folder
    sys.modules.pop("pipeline")
