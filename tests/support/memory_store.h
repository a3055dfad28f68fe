/* A store in the test's own memory: it keeps what is written, tells it when it is asked to, and refuses what
 * it is told to refuse. For the tests of those who write, with every answer that a store may give. */
#pragma once

#include "store/store_internal.h"

struct memory_store {
        struct store store;  /* it is one: store_close() frees it */
        json_t *objects;     /* "Pod default/a" -> the object */
        json_t *changed;     /* the names of those that are to be told */
        json_t *lines;       /* what was asked for: "create Pod default/a", "event Planned default/j" ... */
        const char *refused; /* lines with these words are answered with what follows; NULL = none */
        int result;
        const char *sentence;
        unsigned versions;
        uint64_t age_usec; /* that it says of all kinds; it has told all */
};

struct memory_store *memory_store_new(sd_event *loop, const struct store_options *options);

/* memory_store_replace() - in the place of one that is open, with its options: nothing is in it. */
struct memory_store *memory_store_replace(struct store **store);

/* memory_store_refuse() - from now on; NULL = nothing any more. Borrowed. */
void memory_store_refuse(struct memory_store *m, const char *words, int result, const char *sentence);

/* memory_store_merge() - as another program writes: @json is merged into the object of this name, which is
 * made if there is none. memory_store_drop() - it is gone. */
void memory_store_merge(struct memory_store *m, const char *name, const char *json);
void memory_store_drop(struct memory_store *m, const char *name);

/* memory_store_tell() - what has changed is told, by `changed` of the options, without what nobody reads;
 * memory_store_read() - of every kind that all is read, as after a refresh. */
void memory_store_tell(struct memory_store *m);
void memory_store_read(struct memory_store *m);

/* memory_store_text() - "Pod default/a", "status|phase" -> its text; "?" for no text, "" for nothing.
 * memory_store_count() - how many of the lines have these words? */
const char *memory_store_text(const struct memory_store *m, const char *name, const char *path);
unsigned memory_store_count(const struct memory_store *m, const char *words);
