"""What a token id means in bytes, and how bytes become ids."""

from harness.backend.vocabulary.load import load_vocabulary as load_vocabulary
from harness.backend.vocabulary.load import prepare_vocabulary as prepare_vocabulary
from harness.backend.vocabulary.load import vocabulary_names as vocabulary_names
from harness.backend.vocabulary.model import Vocabulary as Vocabulary
from harness.backend.vocabulary.model import byte_vocabulary as byte_vocabulary
