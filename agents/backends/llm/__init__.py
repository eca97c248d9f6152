"""Language models at the table: a prompt in, one checked reply or one typed fault out."""
