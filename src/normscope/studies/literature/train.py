"""The study's models are Transformers that learn the corpus."""

from normscope.train.plan import next_character as prepare

__all__ = ["prepare"]
