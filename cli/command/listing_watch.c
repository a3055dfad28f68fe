/* A row is compared by its cells without those that age by themselves: "for 12 s" is no news. Its key are the
 * cells of the columns that name the thing. */
#include "cli/command/listing_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command/document.h"

#define CSV_COLUMNS_MAX 32

static bool is_one_of(const char *name, const char *const *names)
{
        for (; names != NULL && *names != NULL; names++)
                if (strcmp(*names, name) == 0)
                        return true;
        return false;
}

/* A row: its cells under their names. */
struct row {
        const char *names[CSV_COLUMNS_MAX], *cells[CSV_COLUMNS_MAX];
        size_t count;
};

static int take(struct listing_watch *w, const struct row *row, const char *kept)
{
        CLEANUP(text_free) struct text key = { 0 }, state = { 0 };

        text_append(&key, "");
        text_append(&state, "");
        for (size_t i = 0; i < row->count; i++) {
                if (is_one_of(row->names[i], w->keys))
                        text_printf(&key, "%s\t", row->cells[i]);
                if (!is_one_of(row->names[i], w->ageing))
                        text_printf(&state, "%s\t", row->cells[i]);
        }
        return key.failed || state.failed ? -ENOMEM : changes_take(&w->changes, key.data, state.data, kept);
}

/* The table of what is printed: as the whole one, after a column of its own where events are wanted. */
static void begin_table(const struct listing_arguments *arguments, const struct table *whole,
                        struct table *ret)
{
        const char *headings[TABLE_COLUMNS_MAX + 1] = { "EVENT" };
        size_t count = arguments->events;

        for (size_t i = 0; i < whole->columns && count < TABLE_COLUMNS_MAX; i++)
                headings[count++] = whole->cells[i].text;
        *ret = (struct table){ .headless = arguments->no_headers || arguments->watching->headed,
                               .widths = arguments->watching->widths };
        table_begin(ret, headings);
}

struct gone {
        const struct listing_arguments *arguments;
        struct table *table;
};

/* As it was when it was last there. */
static void add_gone(void *userdata, const char *key, const char *kept)
{
        const struct gone *gone = userdata;
        CLEANUP(free_p) char *copy = strdup(kept);
        char *rest = copy, *cell;

        (void) key;
        if (gone->arguments->events)
                table_add(gone->table, TABLE_FAINT, "%s", change_name(CHANGE_DELETED));
        while ((cell = strsep(&rest, "\t")) != NULL)
                if (rest != NULL) /* each cell has a tab after it */
                        table_add(gone->table, TABLE_FAINT, "%s", cell);
        gone->table->failed = gone->table->failed || copy == NULL;
}

static int take_table_row(const struct listing_arguments *arguments, const struct table *whole, size_t first)
{
        struct row row = { .count = whole->columns };
        CLEANUP(text_free) struct text kept = { 0 };

        for (size_t i = 0; i < whole->columns; i++) {
                row.names[i] = whole->cells[i].text;
                row.cells[i] = whole->cells[first + i].text;
                text_printf(&kept, "%s\t", row.cells[i]);
        }
        return kept.failed ? -ENOMEM : take(arguments->watching, &row, kept.data);
}

int listing_watch_table(const struct listing_arguments *arguments, const struct table *whole)
{
        CLEANUP(table_free) struct table table;
        struct gone gone = { .arguments = arguments, .table = &table };
        size_t columns = whole->columns;
        int r = whole->failed || columns == 0 || columns + arguments->events > TABLE_COLUMNS_MAX ? -ENOMEM
                                                                                                 : 0;

        begin_table(arguments, whole, &table);
        for (size_t i = columns; r >= 0 && i + columns <= whole->cell_count; i += columns) {
                r = take_table_row(arguments, whole, i);
                if (r > 0 && arguments->events)
                        table_add(&table, TABLE_PLAIN, "%s", change_name((enum change) r));
                for (size_t c = 0; r > 0 && c < columns; c++)
                        table_add(&table, whole->cells[i + c].colour, "%s", whole->cells[i + c].text);
        }
        if (r >= 0)
                r = changes_end(&arguments->watching->changes, add_gone, &gone);
        if (r < 0 || table.cell_count == table.columns) /* nothing but the heading */
                return r < 0 || table.failed ? -ENOMEM : 0;
        arguments->watching->headed = true;
        return table_print(&table, table_wants_colour(stdout), stdout);
}

/* Cuts the fields of the row that begins at `text`, in place: its commas and its end become '\0'. Fields stay
 * quoted as csv.c has quoted them. Return: where the next row begins. */
static char *cut_row(char *text, const char *const *names, struct row *row)
{
        bool quoted = false;

        row->count = 0;
        row->cells[0] = text;
        for (; *text != '\0'; text++) {
                bool end = !quoted && text[0] == '\r' && text[1] == '\n';

                quoted ^= *text == '"';
                if (quoted || (*text != ',' && !end))
                        continue;
                *text = '\0';
                row->names[row->count] = names[row->count];
                row->count++;
                if (end || row->count == CSV_COLUMNS_MAX || names[row->count] == NULL)
                        return end ? text + 2 : text + 1;
                row->cells[row->count] = text + 1;
        }
        return text;
}

static void print_csv(const struct listing_arguments *arguments, enum change change, const char *row)
{
        if (arguments->events)
                printf("%s,", change_name(change));
        fputs(row, stdout);
}

static void print_csv_gone(void *userdata, const char *key, const char *kept)
{
        (void) key;
        print_csv(userdata, CHANGE_DELETED, kept);
}

static void print_csv_header(const struct listing_arguments *arguments, const char *const *names)
{
        struct csv csv = { .out = stdout };

        if (arguments->events)
                csv_word(&csv, "event");
        csv_header(&csv, names);
}

int listing_watch_csv(const struct listing_arguments *arguments, const struct listing_csv *rows)
{
        struct listing_watch *w = arguments->watching;
        const char *text = rows->text != NULL ? rows->text : "";
        CLEANUP(free_p) char *copy = strdup(text);
        char *at = copy;
        int r = copy == NULL ? -ENOMEM : 0;

        if (r == 0 && !w->headed && !arguments->no_headers)
                print_csv_header(arguments, rows->names);
        w->headed = true;
        while (r >= 0 && *at != '\0') {
                struct row row;
                char *next = cut_row(at, rows->names, &row);
                CLEANUP(free_p) char *line = strndup(text + (at - copy), (size_t) (next - at));

                r = line == NULL ? -ENOMEM : take(w, &row, line);
                if (r > 0)
                        print_csv(arguments, (enum change) r, line);
                at = next;
        }
        return r < 0 ? r : changes_end(&w->changes, print_csv_gone, (void *) arguments);
}

static json_t *without_ageing(const json_t *value, const char *const *ageing);

static json_t *array_without_ageing(const json_t *array, const char *const *ageing)
{
        json_t *ret = json_array();

        for (size_t i = 0; i < json_array_size(array); i++)
                (void) json_array_append_new(ret, without_ageing(json_array_get(array, i), ageing));
        return ret;
}

/* A copy without the members that age, however deep they lie. */
static json_t *without_ageing(const json_t *value, const char *const *ageing)
{
        json_t *ret, *object = (json_t *) value;

        if (json_is_array(value))
                return array_without_ageing(value, ageing);
        if (!json_is_object(value))
                return json_deep_copy(value);
        ret = json_object();
        for (void *i = json_object_iter(object); i != NULL; i = json_object_iter_next(object, i))
                if (!is_one_of(json_object_iter_key(i), ageing))
                        (void) json_object_set_new(ret, json_object_iter_key(i),
                                                   without_ageing(json_object_iter_value(i), ageing));
        return ret;
}

static int print_document(const struct listing_arguments *arguments, enum change change, json_t *object,
                          size_t flags)
{
        bool yaml = listing_form(arguments) == LISTING_YAML;
        json_t *document = arguments->events
                                   ? json_pack("{s:s, s:O}", "type", change_name(change), "object", object)
                                   : json_incref(object);
        int r;

        if (yaml && arguments->watching->documents++ > 0)
                puts("---");
        r = document_print(document, yaml, flags);
        json_decref(document);
        return r;
}

static int print_object(const struct listing_arguments *arguments, enum change change, const char *name,
                        json_t *object, size_t flags)
{
        if (listing_form(arguments) != LISTING_NAME)
                return print_document(arguments, change, object, flags);
        if (arguments->events)
                printf("%-8s  ", change_name(change));
        listing_name(name);
        return 0;
}

int listing_object(const struct listing_arguments *arguments, const char *key, const char *name,
                   json_t *object, size_t flags)
{
        struct listing_watch *w = arguments->watching;
        json_t *lasting = without_ageing(object, w->ageing);
        json_t *kept =
                json_pack("{s:s, s:O, s:I}", "name", name, "object", object, "flags", (json_int_t) flags);
        CLEANUP(free_p) char *state = json_dumps(lasting, JSON_COMPACT | JSON_SORT_KEYS | flags);
        CLEANUP(free_p) char *row = json_dumps(kept, JSON_COMPACT | flags);
        int r = state == NULL || row == NULL ? -ENOMEM : changes_take(&w->changes, key, state, row);

        if (r > 0)
                r = print_object(arguments, (enum change) r, name, object, flags);
        json_decref(lasting);
        json_decref(kept);
        json_decref(object);
        return r < 0 ? r : 0;
}

int listing_array(const struct listing_arguments *arguments, const json_t *things, const char *member)
{
        int r = 0;

        for (size_t i = 0; i < json_array_size(things) && r == 0; i++) {
                json_t *thing = json_array_get(things, i);
                const char *name = json_string_value(json_object_get(thing, member));

                if (name != NULL)
                        r = listing_object(arguments, name, name, json_incref(thing), 0);
        }
        return r;
}

static void print_gone_object(void *userdata, const char *key, const char *row)
{
        json_t *kept = json_loads(row, 0, NULL);

        (void) key;
        if (kept != NULL)
                (void) print_object(userdata, CHANGE_DELETED,
                                    json_string_value(json_object_get(kept, "name")),
                                    json_object_get(kept, "object"),
                                    (size_t) json_integer_value(json_object_get(kept, "flags")));
        json_decref(kept);
}

int listing_objects_end(const struct listing_arguments *arguments)
{
        return changes_end(&arguments->watching->changes, print_gone_object, (void *) arguments);
}

bool listing_is_known(const struct listing_arguments *arguments, const char *cell)
{
        CLEANUP(text_free) struct text key = { 0 };

        text_printf(&key, "%s\t", cell);
        return arguments->watching != NULL && !key.failed &&
               changes_know(&arguments->watching->changes, key.data);
}
