/* A map of rows; each look marks those that it has seen. */
#include "cli/command/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct changes_row {
        struct name_map_entry entry; /* first: name_map.h */
        char *key, *state, *row;
        bool seen; /* in the look under way */
};

const char *change_name(enum change change)
{
        static const char *const names[] = { "", "ADDED", "MODIFIED", "DELETED" };

        return names[change];
}

static void free_row(struct changes_row *row)
{
        if (row == NULL)
                return;
        free(row->key);
        free(row->state);
        free(row->row);
        free(row);
}

static struct changes_row *find(const struct changes *changes, const char *key)
{
        return (struct changes_row *) name_map_find(&changes->rows, key);
}

static int add(struct changes *changes, const char *key, const char *state, const char *text)
{
        struct changes_row *row = calloc(1, sizeof(*row));

        if (row == NULL)
                return -ENOMEM;
        *row = (struct changes_row){
                .key = strdup(key), .state = strdup(state), .row = strdup(text), .seen = true
        };
        row->entry.key = row->key;
        if (row->key != NULL && row->state != NULL && row->row != NULL &&
            name_map_insert(&changes->rows, &row->entry) == 0)
                return CHANGE_ADDED;
        free_row(row);
        return -ENOMEM;
}

static int replace(struct changes_row *row, const char *state, const char *text)
{
        bool same = strcmp(row->state, state) == 0;
        char *new_state = strdup(state), *new_text = strdup(text);

        if (new_state == NULL || new_text == NULL) {
                free(new_state);
                free(new_text);
                return -ENOMEM;
        }
        free(row->state);
        free(row->row);
        row->state = new_state;
        row->row = new_text;
        row->seen = true;
        return same ? CHANGE_NONE : CHANGE_MODIFIED;
}

int changes_take(struct changes *changes, const char *key, const char *state, const char *row)
{
        struct changes_row *known = find(changes, key);
        CLEANUP(text_free) struct text again = { 0 };

        for (unsigned n = 2; known != NULL && known->seen; n++) { /* the second of this key, the third ... */
                text_reset(&again);
                text_printf(&again, "%s\n%u", key, n);
                if (again.failed)
                        return -ENOMEM;
                known = find(changes, again.data);
        }
        return known != NULL ? replace(known, state, row)
                             : add(changes, again.data != NULL ? again.data : key, state, row);
}

bool changes_know(const struct changes *changes, const char *key)
{
        return find(changes, key) != NULL;
}

static int compare_keys(const void *a, const void *b)
{
        return strcmp((*(struct changes_row *const *) a)->key, (*(struct changes_row *const *) b)->key);
}

int changes_end(struct changes *changes, void (*gone)(void *userdata, const char *key, const char *row),
                void *userdata)
{
        CLEANUP(free_p) struct changes_row **rows = malloc((changes->rows.count + 1) * sizeof(*rows));
        size_t count = 0;

        if (rows == NULL)
                return -ENOMEM;
        for (struct name_map_entry *e = name_map_first(&changes->rows); e != NULL;
             e = name_map_next(&changes->rows, e)) {
                struct changes_row *row = (struct changes_row *) e;

                if (!row->seen)
                        rows[count++] = row;
                row->seen = false;
        }
        if (count > 0)
                qsort(rows, count, sizeof(*rows), compare_keys);
        for (size_t i = 0; i < count; i++) {
                name_map_remove(&changes->rows, &rows[i]->entry);
                gone(userdata, rows[i]->key, rows[i]->row);
                free_row(rows[i]);
        }
        return 0;
}

void changes_free(struct changes *changes)
{
        for (struct name_map_entry *e = name_map_first(&changes->rows), *next; e != NULL; e = next) {
                next = name_map_next(&changes->rows, e);
                name_map_remove(&changes->rows, e);
                free_row((struct changes_row *) e);
        }
        name_map_free(&changes->rows);
}
