/* Program file: the program table on disk, and the judgement of a program before it is started. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "job/spec/program_table.h"

/* program_file_load() - read and parse a table.
 * Return: 0 and *ret (release with program_table_free()); -ENOENT (no such file), -EACCES, -E2BIG, or the
 * errors of yaml_parse() and program_table_decode(), with the path in front. */
int program_file_load(const char *path, struct program_table *ret, struct err *err);

/* program_file_check() - may this program be started by this process?
 * @ret_sha256: its content's SHA-256, SHA256_HEX_BYTES; NULL = hash only if the table pins one
 * Return: 0; -ENOENT no such file; -EACCES not a file that may be executed; -EKEYREJECTED another content
 * than the table says; another negative errno if it could not be read. */
int program_file_check(const struct program_table_row *program, char *ret_sha256, struct err *err);

/* program_file_script() - is this argument of a program a script that can be read here: a regular file that
 * begins with "#!" or is called NAME.py, .sh, .pl, .rb, .js, .lua, .jl or .R? @ret_sha256: of its content */
#define PROGRAM_FILE_SCRIPT_MAX_BYTES ((off_t) 1 << 24)
bool program_file_script(const char *word, char ret_sha256[SHA256_HEX_BYTES]);

/* program_file_find() - the path of an executable: as named, if there is a '/' in the name, else of PATH.
 * Return: 0; -EACCES (there, but not a file that may be executed); -ENOENT. */
int program_file_find(const char *name, char *ret, size_t ret_bytes);
