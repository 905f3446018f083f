"""Nothing gets in and nothing gets out: every route, credential and text, from the tables that the code goes by."""
