/* Terms are read when their text comes, and are lines of it still. */
#include "scheduler-extender/neighbours/neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/wire/pod_words.h"

static uint32_t word_number(const struct pod_word *word)
{
        char digits[16];
        uint64_t number = 0;

        if (!text_format(digits, sizeof(digits), "%.*s", (int) word->bytes, word->at) ||
            text_parse_uint64(digits, &number) < 0)
                return 0;
        return number < INT32_MAX ? (uint32_t) number : INT32_MAX;
}

static bool begins_term(char c)
{
        return c == 'N' || c == 'A' || c == 'S';
}

/* The lines end with the text, or where a term begins. */
static bool is_last(const char *line)
{
        return *line == '\0' || begins_term(*line);
}

static bool find_label(const char *labels, const struct pod_word *key, struct pod_word *ret)
{
        for (const char *line = strchrnul(labels, '\n'); *line != '\0';) {
                const char *at = line + 1;

                line = strchrnul(at, '\n');
                if (strncmp(at, key->at, key->bytes) != 0 || at[key->bytes] != '=')
                        continue;
                at += key->bytes + 1;
                *ret = (struct pod_word){ .at = at, .bytes = (size_t) (line - at) };
                return true;
        }
        return false;
}

static bool in_namespaces(const char *line, const char *end, const char *labels)
{
        struct pod_word name = { .at = labels, .bytes = (size_t) (strchrnul(labels, '\n') - labels) };

        return (end - line == 1 && *line == '*') || pod_words_among(&name, line, end);
}

static bool line_holds(char relation, const char *line, const char *end, const char *labels)
{
        struct pod_word key, value;
        bool there;

        if (relation == '@')
                return in_namespaces(line, end, labels);
        if (!pod_words_next(&line, end, &key))
                return false;
        there = find_label(labels, &key, &value);
        switch (relation) {
        case 'i':
                return there && pod_words_among(&value, line, end);
        case 'n':
                return !there || !pod_words_among(&value, line, end);
        case 'e':
                return there;
        case 'a':
                return !there;
        default:
                return false;
        }
}

static bool selects(const char *lines, const char *labels)
{
        for (const char *line = lines, *end; !is_last(line); line = pod_words_line(end)) {
                end = strchrnul(line, '\n');
                if (end - line < 2 || !line_holds(line[0], line + 2, end, labels))
                        return false;
        }
        return true;
}

bool neighbours_selects(const struct neighbours_table *table, const struct neighbours_term *term,
                        uint32_t labels)
{
        const char *text = shared_texts_text(&table->labels, labels);

        return text != NULL && selects(term->pods, text);
}

/* The terms that select the labels: "DEMANDS.TERM " each. */
static uint32_t find_class(const struct neighbours_table *table, struct shared_texts *terms, uint32_t labels)
{
        CLEANUP(text_free) struct text text = { 0 };
        uint32_t class = NEIGHBOURS_NONE;

        for (uint32_t i = 0; i < table->demand_capacity; i++)
                for (size_t t = 0; t < table->demands[i].term_count; t++)
                        if (neighbours_selects(table, &table->demands[i].terms[t], labels))
                                text_printf(&text, "%x.%zx ", i, t);
        if (text.data != NULL && !text.failed)
                class = shared_texts_hold(terms, text.data);
        return text.data == NULL || class != NEIGHBOURS_NONE ? class : UINT32_MAX - labels; /* like no other
                                                                                             */
}

/* The table's classes are no part of what it says. */
uint32_t neighbours_class(const struct neighbours_table *table, uint32_t labels)
{
        struct neighbours_classes *classes = &((struct neighbours_table *) table)->classes;
        uint32_t class, *grown;

        if (labels == NEIGHBOURS_NONE || table->demand_count == 0)
                return NEIGHBOURS_NONE;
        if (labels >= classes->known &&
            (grown = realloc(classes->of_labels, (table->labels.count + 1) * sizeof(*grown))) != NULL) {
                memset(grown + classes->known, 0,
                       (table->labels.count + 1 - classes->known) * sizeof(*grown));
                classes->of_labels = grown;
                classes->known = table->labels.count + 1;
        }
        if (labels < classes->known && classes->of_labels[labels] != 0)
                return classes->of_labels[labels] - 1;
        class = find_class(table, &classes->terms, labels);
        if (labels < classes->known)
                classes->of_labels[labels] = class + 1;
        return class;
}

static void forget_classes(struct neighbours_table *table)
{
        shared_texts_free(&table->classes.terms);
        free(table->classes.of_labels);
        table->classes = (struct neighbours_classes){ 0 };
}

bool neighbours_alike(const struct neighbours_table *table, uint32_t a, uint32_t b)
{
        return a == b || neighbours_class(table, a) == neighbours_class(table, b);
}

static void read_term(const char *line, const char *end, struct neighbours_term *ret)
{
        struct pod_word key = { .at = "", .bytes = 0 }, skew = key, least = key, flags = key;
        const char *rest = end - line >= 2 ? line + 2 : NULL;

        *ret = (struct neighbours_term){ .kind = line[0] == 'N'   ? NEIGHBOURS_NEAR
                                                 : line[0] == 'A' ? NEIGHBOURS_APART
                                                                  : NEIGHBOURS_SPREAD,
                                         .pods = pod_words_line(end) };
        if (pod_words_next(&rest, end, &key))
                (void) text_format(ret->key, sizeof(ret->key), "%.*s", (int) key.bytes, key.at);
        if (!pod_words_next(&rest, end, &skew) || !pod_words_next(&rest, end, &least) ||
            !pod_words_next(&rest, end, &flags))
                return;
        ret->max_skew = word_number(&skew);
        ret->min_domains = word_number(&least);
        ret->by_match = memchr(flags.at, 'm', flags.bytes) != NULL;
        ret->by_taints = memchr(flags.at, 't', flags.bytes) != NULL;
}

static size_t count_terms(const char *text)
{
        size_t count = 0;

        for (const char *line = text; *line != '\0'; line = pod_words_line(strchrnul(line, '\n')))
                count += begins_term(line[0]);
        return count < NEIGHBOURS_TERMS_MAX ? count : NEIGHBOURS_TERMS_MAX;
}

static bool read_terms(const char *text, struct neighbours_demands *ret)
{
        size_t count = count_terms(text);

        ret->terms = calloc(count + 1, sizeof(*ret->terms));
        if (ret->terms == NULL)
                return false;
        for (const char *line = text, *end; ret->term_count < count; line = pod_words_line(end)) {
                end = strchrnul(line, '\n');
                if (!begins_term(line[0]))
                        continue;
                read_term(line, end, &ret->terms[ret->term_count]);
                ret->keeps_apart = ret->keeps_apart || ret->terms[ret->term_count].kind == NEIGHBOURS_APART;
                ret->term_count++;
        }
        return true;
}

static bool grow(struct neighbours_table *table, uint32_t number)
{
        uint32_t capacity = number + 8 + number / 2;
        struct neighbours_demands *grown;

        if (number <= table->demand_capacity)
                return true;
        grown = realloc(table->demands, capacity * sizeof(*grown));
        if (grown == NULL)
                return false;
        memset(grown + table->demand_capacity, 0, (capacity - table->demand_capacity) * sizeof(*grown));
        table->demands = grown;
        table->demand_capacity = capacity;
        return true;
}

static void forget_demands(struct neighbours_demands *demands)
{
        free(demands->terms);
        *demands = (struct neighbours_demands){ 0 };
}

uint32_t neighbours_hold_demands(struct neighbours_table *table, const char *text)
{
        uint32_t number = text == NULL ? NEIGHBOURS_NONE : shared_texts_hold(&table->texts, text);
        struct neighbours_demands demands = { .number = number };

        if (number == NEIGHBOURS_NONE ||
            (number <= table->demand_capacity && table->demands[number - 1].number != 0))
                return number;
        if (!grow(table, number) || !read_terms(shared_texts_text(&table->texts, number), &demands)) {
                (void) shared_texts_release(&table->texts, number);
                return NEIGHBOURS_NONE;
        }
        table->demands[number - 1] = demands;
        table->demand_count++;
        table->generation++;
        forget_classes(table);
        return number;
}

uint32_t neighbours_hold_labels(struct neighbours_table *table, const char *text)
{
        return text == NULL ? NEIGHBOURS_NONE : shared_texts_hold(&table->labels, text);
}

void neighbours_refer(struct neighbours_table *table, uint32_t demands, uint32_t labels)
{
        shared_texts_refer(&table->texts, demands);
        shared_texts_refer(&table->labels, labels);
}

void neighbours_release(struct neighbours_table *table, uint32_t demands, uint32_t labels)
{
        if (shared_texts_release(&table->texts, demands)) {
                forget_demands(&table->demands[demands - 1]);
                table->demand_count--;
                table->generation++;
                forget_classes(table);
        }
        if (!shared_texts_release(&table->labels, labels))
                return;
        table->generation++; /* its number will be others' */
        if (labels < table->classes.known)
                table->classes.of_labels[labels] = 0;
}

const char *neighbours_labels_text(const struct neighbours_table *table, uint32_t labels)
{
        return shared_texts_text(&table->labels, labels);
}

const char *neighbours_demands_text(const struct neighbours_table *table, uint32_t demands)
{
        return shared_texts_text(&table->texts, demands);
}

const struct neighbours_demands *neighbours_of(const struct neighbours_table *table, uint32_t demands)
{
        static const struct neighbours_demands none;

        return demands == NEIGHBOURS_NONE ? &none : &table->demands[demands - 1];
}

void neighbours_changed(struct neighbours_table *table)
{
        table->generation++;
}

/* What one job's plan tries is looked at by the view that was made for it; to all others it is news. */
void neighbours_moved(struct neighbours_table *table, const void *job, uint32_t demands, uint32_t labels)
{
        table->slot_changes++;
        if (demands == NEIGHBOURS_NONE && labels == NEIGHBOURS_NONE)
                return;
        if (table->planning != job)
                table->generation++;
        table->planning = job;
}

void neighbours_free(struct neighbours_table *table)
{
        for (uint32_t i = 0; i < table->demand_capacity; i++)
                forget_demands(&table->demands[i]);
        free(table->demands);
        forget_classes(table);
        shared_texts_free(&table->texts);
        shared_texts_free(&table->labels);
        *table = (struct neighbours_table){ 0 };
}
