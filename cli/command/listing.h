/* Listing: the forms in which commands that list things print them, and the options that choose one.
 *
 *     table, wide   for people; wide has more columns
 *     json, yaml    one object, the same in both
 *     name          one name a line: what the next command takes
 *     csv           a row a thing (csv.h)
 *
 * A command says which of them it has; another is refused by the option's own row, with their names.
 *
 * With --watch (cli/command/watching.h) the command lists again and again, and what it lists goes through a
 * struct listing_watch: only rows that are new, that say something else or that are gone are printed, the
 * heading once, and of json and yaml a document a thing. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/options.h"
#include "cli/command/changes.h"
#include "cli/command/csv.h"
#include "cli/command/table.h"

enum listing_form {
        LISTING_TABLE,
        LISTING_WIDE,
        LISTING_JSON,
        LISTING_YAML,
        LISTING_NAME,
        LISTING_CSV,
};

/* A listing that goes on. Columns and members are named as in the form: "NODE" of a table, "node" of csv. */
struct listing_watch {
        const char *const *keys;   /* columns that say which thing a row is of, ends with NULL */
        const char *const *ageing; /* columns and members that change by themselves; ends with NULL */
        struct changes changes;
        bool headed;      /* the heading is printed */
        bool begun;       /* the first look is over */
        size_t documents; /* printed */
        size_t widths[TABLE_COLUMNS_MAX];
};

struct listing_arguments {
        const char *output;
        bool no_headers; /* of table, wide and csv; the others have none */
        bool watch, events;
        struct listing_watch *watching; /* NULL = one look */
};

#define LISTING_FORMS "table|wide|json|yaml|name|csv"

/* Rows for the command's own option table; `options_` has a member `listing` of struct listing_arguments. */
#define LISTING_ARGUMENTS_ROWS(options_, forms_)                                                             \
        { .name = "output",                                                                                  \
          .letter = 'o',                                                                                     \
          .type = OPTION_CHOICE,                                                                             \
          .offset = offsetof(options_, listing.output),                                                      \
          .value = (forms_),                                                                                 \
          .default_ = "table",                                                                               \
          .help = "how to print" },                                                                          \
        {                                                                                                    \
                .name = "no-headers", .type = OPTION_BOOL, .offset = offsetof(options_, listing.no_headers), \
                .help = "rows alone, without the names of the columns"                                       \
        }

/* Of a command that can watch; beside LISTING_ARGUMENTS_ROWS. */
#define LISTING_WATCH_ROWS(options_)                                                                         \
        { .name = "watch",                                                                                   \
          .letter = 'w',                                                                                     \
          .type = OPTION_BOOL,                                                                               \
          .offset = offsetof(options_, listing.watch),                                                       \
          .help = "then a row for each thing that changes, until Ctrl-C" },                                  \
        {                                                                                                    \
                .name = "output-watch-events", .type = OPTION_BOOL,                                          \
                .offset = offsetof(options_, listing.events),                                                \
                .help = "... after the word ADDED, MODIFIED or DELETED"                                      \
        }

enum listing_form listing_form(const struct listing_arguments *arguments);
bool listing_is_document(enum listing_form form); /* json, yaml */

/* listing_check() - for a part of a command that has fewer forms than the command.
 * @what: "--suggest-classes"; @forms: "table|json"
 * Return: 0, or -EINVAL with a sentence that names them. */
int listing_check(const struct listing_arguments *arguments, const char *what, const char *forms,
                  struct err *err);

/* listing_table() - begin a table for these options. listing_table_end() - print it on standard output, or
 * what of it is new, and release it. Return: 0 or -ENOMEM. */
void listing_table(const struct listing_arguments *arguments, const char *const *headings,
                   struct table *table);
int listing_table_end(const struct listing_arguments *arguments, struct table *table);

/* Rows of csv on standard output; as struct csv. */
struct listing_csv {
        struct csv csv;
        const char *const *names;
        char *text; /* of a watch: the rows of the look */
        size_t text_bytes;
};
/* listing_csv() - begin; @ret stays where it is until listing_csv_end(): 0, -EIO or -ENOMEM. */
void listing_csv(const struct listing_arguments *arguments, const char *const *names,
                 struct listing_csv *ret);
int listing_csv_end(const struct listing_arguments *arguments, struct listing_csv *rows);

/* listing_name() - a line of form `name`, cleaned as cells are. */
void listing_name(const char *name);

/* listing_object() - of a watch in form json, yaml or name: a thing, by @key among all and by its name; the
 * reference is taken. @flags: as of document_print(). listing_array() - all of an array, each by the string
 * that is its @member. listing_objects_end() - the look is over.
 * Return: 0 or -ENOMEM. */
int listing_object(const struct listing_arguments *arguments, const char *key, const char *name,
                   json_t *object, size_t flags);
int listing_array(const struct listing_arguments *arguments, const json_t *things, const char *member);
int listing_objects_end(const struct listing_arguments *arguments);

/* listing_is_known() - of a watch as table or csv whose key is one column: has a row been printed that has
 * @cell there? */
bool listing_is_known(const struct listing_arguments *arguments, const char *cell);
