/* DRA journal: what was done to the state of claims since it was written whole, a line a change, in a file
 * beside it: to append a line is one write(2) of a few hundred bytes, to write the state whole is a new file,
 * a rename and a text that grows with the claims.
 *
 * The file begins with the sequence of the state that it goes on from: one of another state says nothing, and
 * is written over. It is begun with the state: where it is missing, somebody took it, or a writer died just
 * then, or a version of before wrote the state. A line without its newline was never written: whoever died
 * over it had answered nobody. Not synced, and no line is kept for long: what must survive a power cut is
 * store/directory/journal.h's.
 *
 *         {"follows":1764300000000000}
 *         {"add":[{"uid":"u1", ... }]}
 *         {"drop":["u1"]} */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/text.h"
#include "plugin/dra/account/dra_state.h"

#define DRA_JOURNAL_MAX_BYTES ((size_t) 64 << 10) /* then the state is written whole: one change in 200 */
#define DRA_JOURNAL_NAME      "claims.journal"

struct dra_journal {
        char path[192];
        size_t read_bytes; /* of whole lines, the first one included; 0 = there is no journal of this state */
};

/* dra_journal_look() - 1 = more was appended than read_bytes; 0 = not; -ENOENT: less is there than was, for
 * somebody took it away; or another negative errno. */
int dra_journal_look(const struct dra_journal *journal, struct err *err);

/* dra_journal_read() - what was appended since the last call is done to `state`, whose sequence is the one
 * that read_bytes are of. Return: 1; 0 = nothing was; a negative errno: the state may have some of it. */
int dra_journal_read(struct dra_journal *journal, struct dra_state *state, struct err *err);

/* dra_journal_begin() - under the lock: an empty one of the state that was just written. Where it cannot be
 * made the next line makes it. */
void dra_journal_begin(struct dra_journal *journal, uint64_t sequence);

/* dra_journal_append() - @lines: each with its newline. Under a lock, after dra_journal_read(): what a dead
 * writer left of a line is cut away. 0; -ENOENT: less is there than was read, and the state must be written
 * whole; or another negative errno: then the file is as before. */
int dra_journal_append(struct dra_journal *journal, uint64_t sequence, const struct text *lines,
                       struct err *err);
