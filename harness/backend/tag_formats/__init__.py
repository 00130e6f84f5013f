"""Structural tags in the new form: a `format` that is made of formats (docs/structural_tags.md).

`forms` defines what a format is, and `read` makes one of JSON or says what is wrong, and where.
"""

from harness.backend.tag_formats.forms import Format as Format
from harness.backend.tag_formats.read import FormatError as FormatError
from harness.backend.tag_formats.read import has_format as has_format
from harness.backend.tag_formats.read import read_tag as read_tag
