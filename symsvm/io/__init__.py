"""Files in and out: data sets (`data`), fitted models (`models`) and text corpora (`text`).

`file_errors` has the exceptions of all three. Packages from `model_selection` on, the command line and the service may
import from here; the public names are also in `symsvm.data`, `symsvm.files` and `symsvm.text`.
"""

__all__ = []
