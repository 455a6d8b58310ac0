"""Files, corpora, the store, and which code and packages decide a result."""
