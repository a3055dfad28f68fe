/* One requirement after the other, each of them a line of the text. */
#include "scheduler-extender/wire/label_selector.h"

#include <errno.h>
#include <string.h>

#include "base/object_name.h"

#define KEY_BYTES (OBJECT_NAME_DNS_BYTES + OBJECT_NAME_LABEL_BYTES + 1)

struct selector {
        const char *at; /* what is not read yet */
        struct text *out;
        struct err *err;
};

static int refuse(struct selector *s, const char *what)
{
        return err_set(s->err, -EINVAL,
                       "a selector has %s at '%.60s'; write KEY=VALUE, KEY!=VALUE, 'KEY in (A,B)', "
                       "'KEY notin (A,B)', KEY or '!KEY', with commas between",
                       what, s->at);
}

static void skip_blanks(struct selector *s)
{
        s->at += strspn(s->at, " ");
}

static bool take(struct selector *s, const char *token)
{
        skip_blanks(s);
        if (!text_starts_with(s->at, token))
                return false;
        s->at += strlen(token);
        return true;
}

/* A word is what no operator cuts. Return: false = it is too long for any. */
static bool take_word(struct selector *s, char word[KEY_BYTES])
{
        size_t bytes;

        skip_blanks(s);
        bytes = strcspn(s->at, " =!,()");
        if (bytes >= KEY_BYTES)
                return false;
        memcpy(word, s->at, bytes);
        word[bytes] = '\0';
        s->at += bytes;
        return true;
}

/* "zone", "example.com/zone" */
static bool is_key(const char *word)
{
        const char *slash = strchr(word, '/');

        if (slash != NULL && !object_name_dns_valid(word, (size_t) (slash - word)))
                return false;
        return object_name_word_valid(slash == NULL ? word : slash + 1);
}

static int read_value(struct selector *s)
{
        struct selector before = *s;
        char word[KEY_BYTES];

        if (!take_word(s, word) || (word[0] != '\0' && !object_name_word_valid(word)))
                return refuse(&before, "no label's value");
        text_printf(s->out, "\t%s", word);
        return 0;
}

/* (A, B) */
static int read_values(struct selector *s)
{
        int r;

        if (!take(s, "("))
                return refuse(s, "no '('");
        do
                r = read_value(s);
        while (r == 0 && take(s, ","));
        if (r < 0)
                return r;
        return take(s, ")") ? 0 : refuse(s, "no ')'");
}

/* What stands behind the key, whose line has begun without its relation. */
static int read_relation(struct selector *s, const char *key, size_t line)
{
        char relation, word[KEY_BYTES];
        const char *before;
        int r = 0;

        text_printf(s->out, "?\t%s", key);
        if (take(s, "!=")) {
                relation = 'n';
                r = read_value(s);
        } else if (take(s, "==") || take(s, "=")) {
                relation = 'i';
                r = read_value(s);
        } else {
                before = s->at;
                if (!take_word(s, word))
                        return refuse(s, "no operator");
                relation = (char) (word[0] == '\0' ? 'e' : word[0] == 'i' ? 'i' : 'n');
                if (strcmp(word, "in") == 0 || strcmp(word, "notin") == 0) {
                        r = read_values(s);
                } else if (word[0] != '\0') {
                        s->at = before;
                        return refuse(s, "no operator");
                }
        }
        if (!s->out->failed)
                s->out->data[line] = relation;
        text_append_char(s->out, '\n');
        return r;
}

static int read_requirement(struct selector *s)
{
        bool absent = take(s, "!");
        struct selector before;
        char key[KEY_BYTES];

        skip_blanks(s);
        before = *s;
        if (!take_word(s, key) || !is_key(key))
                return refuse(&before, "no label's name");
        if (!absent)
                return read_relation(s, key, s->out->size_bytes);
        text_printf(s->out, "a\t%s\n", key);
        return 0;
}

int label_selector_parse(const char *selector, struct text *ret, struct err *err)
{
        struct selector s = { .at = selector, .out = ret, .err = err };
        int r;

        skip_blanks(&s);
        if (*s.at == '\0')
                return 0;
        text_append(ret, "|\n");
        do
                r = read_requirement(&s);
        while (r == 0 && take(&s, ","));
        if (r < 0)
                return r;
        if (*s.at != '\0')
                return refuse(&s, "no comma");
        return ret->failed ? err_set(err, -ENOMEM, "no memory for a selector") : 0;
}
