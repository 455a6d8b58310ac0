"""What users import as ``normscope``: tables, trained models, and measurements of their own."""
