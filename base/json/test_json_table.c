/* A table reads, writes and releases structs; what does not fit is said with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"

enum colour { COLOUR_RED, COLOUR_GREEN };

struct part {
        char name[8];
        unsigned total;
        char *note;
};

struct limit {
        char rule[8];
        unsigned level;
};

struct whole {
        bool on;
        uint64_t big;
        int8_t small;
        uint16_t port;
        double share;
        char name[8];
        char *owned;
        enum colour colour;
        uint64_t time_usec, minutes_usec;
        struct part inner;
        struct part fixed[2];
        size_t fixed_count;
        struct part *parts;
        size_t part_count;
        char **words;
        size_t word_count;
        char args[3][4];
        size_t arg_count;
        struct limit *limits;
        size_t limit_count;
        json_t *any;
        double deep, counted;
        unsigned twice;
        bool there;
};

static int decode_half(const struct json_field *at, void *field, struct err *err)
{
        int64_t value = 0;
        int r = json_field_as_int64(at, 0, 100, &value, err);

        if (r == 0)
                *(unsigned *) field = (unsigned) value * 2;
        return r;
}

static json_t *encode_half(const void *field)
{
        return json_integer(*(const unsigned *) field / 2);
}

static int check_part(const struct json_field *at, void *object, struct err *err)
{
        const struct part *p = object;

        return strcmp(p->name, "bad") == 0 ? json_field_error(at, err, "is no part") : 0;
}

#define PART(member)  JSON_TABLE_AT(struct part, member)
#define LIMIT(member) JSON_TABLE_AT(struct limit, member)
#define AT(member)    JSON_TABLE_AT(struct whole, member)

/* clang-format off */
static const struct part part_initial = { .total = 7 };
static const struct json_table_row part_rows[] = {
        { "name",  JSON_TABLE_CHARS,  PART(name), .required = true },
        { "total", JSON_TABLE_UINT,   PART(total), .max = 1024 },
        { "note",  JSON_TABLE_STRING, PART(note), .omit = true },
        { .name = NULL },
};
static const struct json_table part_table = { .rows = part_rows, .size_bytes = sizeof(struct part), .strict = true,
                                              .initial = &part_initial, .check = check_part };
static const struct json_table_row limit_value = { "", JSON_TABLE_UINT, LIMIT(level), .max = 9 };
static const struct json_table limit_table = { .size_bytes = sizeof(struct limit), .key = offsetof(struct limit, rule),
                                               .key_bytes = 8 };
static const struct json_table_row word = { "", JSON_TABLE_STRING, .size_bytes = sizeof(char *) },
                                   argument = { "", JSON_TABLE_CHARS, .size_bytes = 4 };
static const char *const colours[] = { "red", "green", NULL };
static const struct json_table_row whole_rows[] = {
        { "kind",   JSON_TABLE_CONSTANT, .text = "Whole" },
        { "on",     JSON_TABLE_BOOL,   AT(on) },
        { "big",    JSON_TABLE_UINT,   AT(big) },
        { "small",  JSON_TABLE_INT,    AT(small) },
        { "port",   JSON_TABLE_UINT,   AT(port), .min = 1 },
        { "share",  JSON_TABLE_DOUBLE, AT(share), .most = 1 },
        { "name",   JSON_TABLE_CHARS,  AT(name) },
        { "owned",  JSON_TABLE_STRING, AT(owned) },
        { "colour", JSON_TABLE_CHOICE, AT(colour), .names = colours },
        { "time",   JSON_TABLE_TIME,   AT(time_usec), .omit = true },
        { "inner",  JSON_TABLE_OBJECT, AT(inner), .table = &part_table },
        { "fixed",  JSON_TABLE_ARRAY,  AT(fixed), .table = &part_table, .count = offsetof(struct whole, fixed_count) },
        { "parts",  JSON_TABLE_LIST,   AT(parts), .table = &part_table, .count = offsetof(struct whole, part_count), .max = 3 },
        { "words",  JSON_TABLE_LIST,   AT(words), .element = &word, .count = offsetof(struct whole, word_count) },
        { "args",   JSON_TABLE_ARRAY,  AT(args), .element = &argument, .count = offsetof(struct whole, arg_count), .omit = true },
        { "limits", JSON_TABLE_MAP,    AT(limits), .table = &limit_table, .element = &limit_value,
          .count = offsetof(struct whole, limit_count), .max = 2 },
        { "any",    JSON_TABLE_VALUE,  AT(any), .omit = true },
        { "a.b.deep", JSON_TABLE_DOUBLE, AT(deep), .omit = true },
        { "counted", JSON_TABLE_COUNT, AT(counted) },
        { "minutes", JSON_TABLE_UINT, AT(minutes_usec), .max = 10, .scale = 60000000, .omit = true },
        { "old_name", JSON_TABLE_CHARS, AT(name), .read_only = true },
        { "half",   JSON_TABLE_CUSTOM, AT(twice), .decode = decode_half, .encode = encode_half },
        { .name = NULL },
};
static const struct json_table whole_table = { .rows = whole_rows, .size_bytes = sizeof(struct whole) };
static const struct json_table lenient_table = { .rows = whole_rows, .size_bytes = sizeof(struct whole), .lenient = true };

static const struct {
        const char *what, *json, *message; /* "" = accepted */
} refusals[] = {
        { "nothing",         "{}", "" },
        { "nulls",           "{'on':null,'parts':null,'inner':null}", "" },
        { "others",          "{'unknown':1}", "" },
        { "no object",       "[]", "must be an object, not a list" },
        { "a bool",          "{'on':1}", "on: must be true or false, not a number" },
        { "whole",           "{'big':3.0}", "" },
        { "large",           "{'big':9223372036854775807}", "" },
        { "negative",        "{'big':-1}", "big: must be a whole number in 0..9223372036854775807, not -1" },
        { "of a byte",       "{'small':-128}", "" },
        { "below a byte",    "{'small':-129}", "small: must be a whole number in -128..127, not -129" },
        { "least",           "{'port':0}", "port: must be a whole number in 1..65535, not 0" },
        { "a share",         "{'share':1.5}", "share: must be a number in 0..1, not 1.5" },
        { "long",            "{'name':'12345678'}", "name: must have at most 7 bytes, not 8" },
        { "NUL",             "{'owned':'a\\u0000b'}", "owned: must not contain a NUL character" },
        { "choice",          "{'colour':'blue'}", "colour: must be one of red, green, not 'blue'" },
        { "time",            "{'time':'noon'}", "time: must be a time such as 2026-11-21T10:00:00Z" },
        { "required",        "{'inner':{}}", "inner.name: is missing" },
        { "strict",          "{'inner':{'name':'a','totl':1}}", "inner.totl: is not known here; known: name, total, note" },
        { "checked",         "{'inner':{'name':'bad'}}", "inner: is no part" },
        { "fits",            "{'fixed':[{'name':'a'},{'name':'b'}]}", "" },
        { "too many",        "{'fixed':[{},{},{}]}", "fixed: must have at most 2 elements, not 3" },
        { "in a list",       "{'parts':[{'name':'a'},{'name':'b','total':1025}]}",
          "parts[1].total: must be a whole number in 0..1024, not 1025" },
        { "a null in it",    "{'parts':[null]}", "parts[0]: must be an object, not null" },
        { "allowed",         "{'parts':[{'name':'a'},{'name':'b'},{'name':'c'},{'name':'d'}]}",
          "parts: must have at most 3 elements, not 4" },
        { "a word",          "{'words':['a',1]}", "words[1]: must be a string, not a number" },
        { "a word is null",  "{'words':['a',null]}", "words[1]: must not be null" },
        { "an argument",     "{'args':['abcd']}", "args[0]: must have at most 3 bytes, not 4" },
        { "a map's value",   "{'limits':{'x':10}}", "limits.x: must be a whole number in 0..9, not 10" },
        { "a map's name",    "{'limits':{'12345678':1}}", "limits.12345678: its name must have at most 7 bytes" },
        { "a map's size",    "{'limits':{'a':1,'b':1,'c':1}}", "limits: must have at most 2 members, not 3" },
        { "a path",          "{'a':{'b':{'deep':'x'}}}", "a.b.deep: must be a number, not the string 'x'" },
        { "no path",         "{'a':1}", "a: must be an object, not a number" },
        { "counted",         "{'counted':'3'}", "counted: must be a number, not the string '3'" },
        { "scaled",          "{'minutes':11}", "minutes: must be a whole number in 0..10, not 11" },
        { "custom",          "{'half':101}", "half: must be a whole number in 0..100, not 101" },
};
/* clang-format on */

static json_t *load(const char *quoted)
{
        char *text = strdup(quoted);
        json_t *value;

        for (char *c = text; *c != '\0'; c++)
                *c = *c == '\'' ? '"' : *c;
        value = json_loads(text, JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        free(text);
        return value;
}

static void says_what_does_not_fit_and_where(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                json_t *value = load(refusals[i].json);
                struct whole whole = { 0 };
                struct err err = { 0 };
                int r = json_table_decode(&whole_table, value, &whole, &err);

                if (strcmp(err.msg, refusals[i].message) != 0 ||
                    r != (refusals[i].message[0] == '\0' ? 0 : -EBADMSG))
                        fail_msg("%s: %d '%s'", refusals[i].what, r, err.msg);
                if (r < 0 && (whole.parts != NULL || whole.words != NULL || whole.limits != NULL ||
                              whole.owned != NULL || whole.any != NULL))
                        fail_msg("%s: something is left", refusals[i].what);
                json_table_free(&whole_table, &whole);
                r = json_table_decode(&lenient_table, value, &whole, &err);
                if (r < 0 && strstr(refusals[i].json, "inner") == NULL &&
                    strstr(refusals[i].json, "parts") == NULL)
                        fail_msg("%s: lenient: %s", refusals[i].what, err.msg);
                json_table_free(&whole_table, &whole);
                json_decref(value);
        }
}

#define FULL                                                                                                 \
        "{'kind':'Whole','on':true,'big':9007199254740993,'small':-5,'port':65535,'share':0.25,"             \
        "'name':'n','owned':'o','colour':'green','time':'2026-11-21T10:00:00Z',"                             \
        "'inner':{'name':'i','total':1,'note':'x'},'fixed':[{'name':'f','total':7}],"                        \
        "'parts':[{'name':'a','total':7},{'name':'b','total':0,'note':'y'}],'words':['w',''],"               \
        "'args':['abc','d'],'limits':{'l1':1,'l2':2},'any':{'x':[1,null]},'a':{'b':{'deep':2.5}},'counted':" \
        "12,'minutes':3,'half':21}"

static void what_is_written_is_what_was_read(void **state)
{
        json_t *value = load(FULL), *again, *twice;
        struct whole whole = { 0 }, copy = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_table_decode(&whole_table, value, &whole, &err), 0);
        assert_int_equal(whole.small, -5);
        assert_int_equal(whole.fixed[0].total, 7); /* a default of the table's */
        assert_int_equal(whole.twice, 42);
        assert_int_equal(whole.minutes_usec, 180000000);
        assert_null(whole.words[2]); /* one more, zeroed */
        again = json_table_encode(&whole_table, &whole);
        assert_true(json_equal(value, again));
        assert_int_equal(json_table_decode(&whole_table, again, &copy, &err), 0);
        twice = json_table_encode(&whole_table, &copy);
        assert_true(json_equal(twice, again));
        json_decref(value);
        json_decref(again);
        json_decref(twice);
        json_table_free(&whole_table, &whole);
        json_table_free(&whole_table, &copy);
        json_table_free(&whole_table, &copy); /* of what is empty */
}

/* Structs of random content: what is written reads back as the same text. */
static void round_trips(void **state)
{
        (void) state;
        srandom(14);
        for (unsigned n = 0; n < 2000; n++) {
                struct whole whole = { .on = random() % 2 == 0,
                                       .big = (uint64_t) random() * (uint64_t) random(),
                                       .small = (int8_t) random(),
                                       .port = (uint16_t) (1 + random() % 65535),
                                       .share = (double) (random() % 1000) / 1000,
                                       .name = { (char) (random() % 127 + 1), (char) (random() % 127 + 1) },
                                       .colour = (enum colour)(random() % 2),
                                       .time_usec = (uint64_t) random(),
                                       .inner = { .name = "i", .total = (unsigned) random() % 1025 },
                                       .arg_count = (size_t) random() % 4,
                                       .deep = (double) random() / 3,
                                       .twice = (unsigned) (random() % 100) * 2 },
                             copy = { 0 };
                json_t *text = json_table_encode(&whole_table, &whole), *again;
                struct err err = { 0 };

                if (json_table_decode(&whole_table, text, &copy, &err) < 0)
                        fail_msg("case %u: %s", n, err.msg);
                again = json_table_encode(&whole_table, &copy);
                assert_true(json_equal(text, again));
                assert_true(copy.big == whole.big && copy.small == whole.small);
                assert_true(!(copy.deep < whole.deep || copy.deep > whole.deep));
                json_decref(text);
                json_decref(again);
                json_table_free(&whole_table, &copy);
        }
}

static void defaults_stay_and_what_is_empty_is_left_out(void **state)
{
        struct whole whole = { .port = 80, .share = NAN, .name = "\xff!" };
        json_t *value = load("{'big':1}"), *written;

        (void) state;
        assert_int_equal(json_table_decode(&whole_table, value, &whole, NULL), 0);
        assert_int_equal(whole.port, 80);
        assert_string_equal(whole.name, "\xff!");
        written = json_table_encode(&whole_table, &whole);
        assert_null(json_object_get(written, "time"));
        assert_null(json_object_get(written, "a"));
        assert_null(json_object_get(written, "any"));
        assert_true(json_is_null(json_object_get(written, "share")));
        assert_true(json_is_null(json_object_get(written, "owned")));
        assert_string_equal(json_string_value(json_object_get(written, "name")), "?!");
        json_decref(value);
        json_decref(written);
        json_table_free(&whole_table, &whole);
}

struct figures {
        enum colour colour;
        double least, count;
        char *text;
        struct part part;
        char note[8];
};

/* What is left out where it is written: what is not set, and what is empty of its kind. */
static void each_kind_has_its_own_emptiness(void **state)
{
#define FIGURE(member) JSON_TABLE_AT(struct figures, member)
        static const char *const named[] = { "", "green", NULL };
        static const struct json_table_row note_rows[] = {
                { "note", JSON_TABLE_STRING, PART(note), .omit = true },
                { .name = NULL },
        };
        static const struct json_table notes = { .rows = note_rows, .size_bytes = sizeof(struct part) };
        static const struct json_table_row figure_rows[] = {
                { "colour", JSON_TABLE_CHOICE, FIGURE(colour), .names = named, .omit = true },
                { "least", JSON_TABLE_DOUBLE, FIGURE(least), .unset = true },
                { "count", JSON_TABLE_COUNT, FIGURE(count), .omit = true },
                { "text", JSON_TABLE_STRING, FIGURE(text), .omit = true },
                { "part", JSON_TABLE_OBJECT, FIGURE(part), .table = &notes, .omit = true },
                { "note", JSON_TABLE_CHARS, FIGURE(note), .omit = true },
                { .name = "comment", .kind = JSON_TABLE_UNREAD },
                { .name = NULL },
        };
        static const struct json_table table = { .rows = figure_rows, .size_bytes = sizeof(struct figures) };
        static char some[] = "some", nothing[] = "";
        static const struct {
                struct figures figures;
                const char *json;
        } rows[] = {
                { { .least = 0 }, "{'colour':'','least':0.0}" }, /* a choice is one, whatever it is called */
                { { .colour = 7, .least = -1, .count = NAN, .text = nothing }, "{}" },
                { { .colour = 1, .least = NAN, .count = -3, .text = some, .part.note = some, .note = "n" },
                  "{'colour':'green','count':-3,'text':'some','part':{'note':'some'},'note':'n'}" },
                { { .least = 2, .count = 1e300 }, "{'colour':'','least':2.0}" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *written = json_table_encode(&table, &rows[i].figures), *want = load(rows[i].json);
                CLEANUP(free_p) char *text = json_dumps(written, JSON_COMPACT);

                if (!json_equal(written, want))
                        fail_msg("row %zu: %s", i, text);
                json_decref(written);
                json_decref(want);
        }
}

static void lenient_takes_what_fits(void **state)
{
        json_t *value = load(
                "{'big':'x','small':3,'old_name':'old','words':['a',1],'limits':{'a':1,'b':2,'c':3},'a':7}");
        struct whole whole = { .big = 5, .deep = 1 };

        (void) state;
        assert_int_equal(json_table_decode(&lenient_table, value, &whole, NULL), 0);
        assert_int_equal(whole.big, 5);
        assert_int_equal(whole.small, 3);
        assert_string_equal(whole.name, "old");
        assert_int_equal(whole.word_count, 2);
        assert_string_equal(whole.words[0], "a");
        assert_null(whole.words[1]);
        assert_int_equal(whole.limit_count, 2);
        json_table_free(&lenient_table, &whole);
        json_decref(value);
        assert_int_equal(json_table_decode(&lenient_table, NULL, &whole, NULL), 0);
}

struct worker {
        const char *name;
        double speed;
        double *points;
        size_t point_count;
};

#define WORKER(member) JSON_TABLE_AT(struct worker, member)
static const struct json_table_row point_row = { "", JSON_TABLE_DOUBLE, .size_bytes = sizeof(double) };
static const struct json_table_row worker_rows[] = {
        { "name", JSON_TABLE_BORROWED, WORKER(name), .min = 1, .required = true, .mend = "a name" },
        { "speed", JSON_TABLE_DOUBLE, WORKER(speed), .most = 9, .mend = "samples per second" },
        { "points", JSON_TABLE_LIST, WORKER(points), .min = 1, .element = &point_row,
          .count = offsetof(struct worker, point_count), .mend = "points" },
        { .name = "comment", .kind = JSON_TABLE_UNREAD },
        { .name = NULL },
};
static const struct json_table worker_table = { .rows = worker_rows,
                                                .size_bytes = sizeof(struct worker),
                                                .strict = true };

static const struct {
        const char *json, *wrong;
} mends[] = {
        { "{}", "name: is missing; give a name" },
        { "{'name':''}", "name: must not be empty; give a name" },
        { "{'name':'a','speed':-1}", "speed: must be a number in 0..9, not -1; give samples per second" },
        { "{'name':'a','points':[]}", "points: must not be empty; give points" },
        { "{'name':'a','points':7}", "points: must be a list, not a number; give points" },
        { "{'name':'a','points':['x']}", "points[0]: must be a number, not the string 'x'" },
        { "{'name':'a','comment':{'any':'thing'}}", "" },
};

static void what_is_wrong_says_how_to_mend_it(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(mends) / sizeof(mends[0]); i++) {
                json_t *value = load(mends[i].json);
                struct worker worker = { 0 };
                struct err err = { 0 };

                assert_int_equal(json_table_decode(&worker_table, value, &worker, NULL),
                                 mends[i].wrong[0] == '\0' ? 0 : -EBADMSG); /* nobody need listen */
                json_table_free(&worker_table, &worker);
                worker = (struct worker){ 0 };

                if (json_table_decode(&worker_table, value, &worker, &err) == 0)
                        json_table_free(&worker_table, &worker);
                if (strcmp(err.msg, mends[i].wrong) != 0)
                        fail_msg("%s: want '%s', got '%s'", mends[i].json, mends[i].wrong, err.msg);
                json_decref(value);
        }
}

static bool is_small(const char *text)
{
        return text[0] >= 'a' && text[0] <= 'z';
}

static const struct {
        const char *text, *says;
} refused[] = {
        { "{'big': 0}", "big: 0 is not a whole number in 1..9; small enough" },
        { "{'big': 3.0}", "big: 3.0 is not a whole number in 1..9; small enough" },
        { "{'big': null}", "big: null is not a whole number in 1..9; small enough" },
        { "{'share': 2}", "share: 2 is not a number in 0..1; a part" },
        { "{'name': ''}", "name: \"\" is not text of 1 to 7 bytes without line ends; a word" },
        { "{'name': 'a\\u0001'}",
          "name: \"a\\u0001\" is not text of 1 to 7 bytes without line ends; a word" },
        { "{'name': 'B'}", "name: 'B' begins with no small letter" },
        { "{'colour': 1}", "colour: 1 is none of red, green; a colour" },
        { "{'inner': 1}", "inner: 1 is not a mapping of fields; write `name: value` lines below it" },
        { "{'inner': {'x': 1}}", "inner.x: no such field; there are total" },
        { "{}", "words: missing; write some" },
        { "{'words': ['a', 1]}", "words: [\"a\",1] is not understood; at most two" },
        { "{'words': ['a', null]}", "words: [\"a\",null] is not understood; at most two" },
        { "{'args': ['a\\u007f']}", "args: [\"a?\"] is not understood; short words" },
        { "{'args': ['a', '']}", "args: [\"a\",\"\"] is not understood; short words" },
        { "{'limits': {'a-long-name': 1}}", "limits.a-long-name: its name must have at most 7 bytes" },
        { "{'limits': {'A-long-name': 1}}", "limits.A-long-name: begins with no small letter" },
        { "{'words': ['a', 'B']}", "words[1]: 'B' begins with no small letter" },
};

static void what_a_person_wrote_is_taken_at_its_word(void **state)
{
        static const struct json_table_rule small = { is_small, "begins with no small letter" };
        static const char *const named[] = { "red", "green", NULL };
        static const struct json_table_row small_word = { "", JSON_TABLE_STRING, .size_bytes = sizeof(char *),
                                                          .rule = &small };
        static const struct json_table_row some_word = { "", JSON_TABLE_CHARS, .min = 1,
                                                         .size_bytes =
                                                                 sizeof(((struct whole *) 0)->args[0]) };
        static const struct json_table_row total_rows[] = {
                { "total", JSON_TABLE_UINT, PART(total), .max = 9, .help = "how many" },
                { .name = NULL },
        };
        static const struct part none;
        static const struct json_table small_part = {
                .rows = total_rows, .size_bytes = sizeof(struct part), .strict = true, .initial = &none
        };
        static const struct json_table_row own_rows[] = {
                { "big", JSON_TABLE_UINT, AT(big), .min = 1, .max = 9, .help = "small enough" },
                { "share", JSON_TABLE_DOUBLE, AT(share), .most = 1, .help = "a part" },
                { "name", JSON_TABLE_CHARS, AT(name), .min = 1, .rule = &small, .help = "a word" },
                { "colour", JSON_TABLE_CHOICE, AT(colour), .names = named, .help = "a colour" },
                { "inner", JSON_TABLE_OBJECT, AT(inner), .table = &small_part,
                  .given = offsetof(struct whole, there), .help = "" },
                { "args", JSON_TABLE_ARRAY, AT(args), .element = &some_word,
                  .count = offsetof(struct whole, arg_count), .help = "short words" },
                { "limits", JSON_TABLE_MAP, AT(limits), .table = &limit_table, .element = &limit_value,
                  .count = offsetof(struct whole, limit_count), .max = 2, .rule = &small, .help = "by rule" },
                { "words", JSON_TABLE_LIST, AT(words), .element = &small_word,
                  .count = offsetof(struct whole, word_count), .max = 2, .required = true,
                  .mend = "write some", .help = "at most two" },
                { .name = NULL },
        };
        static const struct json_table table = { .rows = own_rows,
                                                 .size_bytes = sizeof(struct whole),
                                                 .strict = true };
        struct whole whole = { .inner.total = 7 };
        struct err err = { 0 };
        json_t *given;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                json_t *value = load(refused[i].text);

                assert_int_equal(json_table_decode(&table, value, &whole, &err), -EBADMSG);
                assert_string_equal(err.msg, refused[i].says);
                json_decref(value);
        }
        given = load("{'words': ['a', ''], 'inner': {}}"); /* a rule is for what is there */
        assert_int_equal(json_table_decode(&table, given, &whole, &err), 0);
        json_decref(given);
        assert_true(whole.there && whole.inner.total == 0 && whole.word_count == 2);
        assert_string_equal(whole.words[1], "");
        json_table_free(&table, &whole);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(says_what_does_not_fit_and_where),
                cmocka_unit_test(what_is_written_is_what_was_read),
                cmocka_unit_test(round_trips),
                cmocka_unit_test(defaults_stay_and_what_is_empty_is_left_out),
                cmocka_unit_test(each_kind_has_its_own_emptiness),
                cmocka_unit_test(lenient_takes_what_fits),
                cmocka_unit_test(what_is_wrong_says_how_to_mend_it),
                cmocka_unit_test(what_a_person_wrote_is_taken_at_its_word),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
