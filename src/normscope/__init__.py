"""normscope: what normalization does inside transformers, measured."""
