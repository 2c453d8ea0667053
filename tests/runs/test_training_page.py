"""docs/training.md: its snippets run, in order."""

import re

from conftest import ROOT


def test_the_snippets_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "docs/training.md").read_text(), re.S)
    assert len(snippets) == 3
    names = {}
    for snippet in snippets:
        exec(compile(snippet, "docs/training.md", "exec"), names)
    assert names["step"].metrics.loss > 0 and len(capsys.readouterr().out.splitlines()) == 2
