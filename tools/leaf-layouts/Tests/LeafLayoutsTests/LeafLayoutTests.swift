// Empty for the first build.
