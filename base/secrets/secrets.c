/* What was learned is looked for first, then what is known by its form. */
#include "base/secrets/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/secrets/secret_name.h"
#include "base/secrets/secret_ranges.h"
#include "base/secrets/serials.h"

#define DEPTH_MAX 64 /* of JSON; deeper is masked as a whole */

void secrets_free(struct secrets *secrets)
{
        struct name_map_entry *entry = name_map_first(&secrets->serials);

        while (entry != NULL) {
                struct name_map_entry *next = name_map_next(&secrets->serials, entry);

                free(entry);
                entry = next;
        }
        name_map_free(&secrets->serials);
        for (size_t i = 0; i < secrets->value_count; i++)
                free(secrets->values[i]);
        free(secrets->values);
        *secrets = (struct secrets){ 0 };
}

void secrets_learn(struct secrets *secrets, const char *value)
{
        char **place;

        if (value == NULL || strlen(value) < SECRETS_LEAST_BYTES)
                return;
        for (size_t i = 0; i < secrets->value_count; i++)
                if (strcmp(secrets->values[i], value) == 0)
                        return;
        if (secrets->value_count == SECRETS_MAX) {
                secrets->full = true;
                return;
        }
        place = array_add(&secrets->values, &secrets->value_count, NULL, sizeof(*place));
        if (place != NULL && (*place = strdup(value)) == NULL)
                secrets->value_count--;
        secrets->failed = secrets->failed || place == NULL || *place == NULL;
}

static void learn_serial(struct secrets *secrets, const char *text)
{
        const char *token = text == NULL ? "" : text + serials_prefix(text, strlen(text));

        if (strlen(token) < SECRETS_LEAST_BYTES || name_map_find(&secrets->serials, token) != NULL)
                return;
        if (secrets->serials.count >= SECRETS_SERIALS_MAX) {
                secrets->serials_full = true;
                return;
        }
        if (name_map_make(&secrets->serials, token, sizeof(struct name_map_entry)) == NULL)
                secrets->failed = true;
}

static bool is_of_serials(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_';
}

static void replace_serial(struct secrets *secrets, char *run, size_t size)
{
        size_t prefix = serials_prefix(run, size);
        char word[256];

        if (size < SECRETS_LEAST_BYTES || size - prefix >= sizeof(word))
                return;
        memcpy(word, run + prefix, size - prefix);
        word[size - prefix] = '\0';
        if (name_map_find(&secrets->serials, word) == NULL &&
            (prefix != 4 || !serials_is_uuid(word, size - prefix)))
                return;
        serials_mask(word, size - prefix);
        memcpy(run + prefix, word, size - prefix);
        secrets->serials_masked++;
}

/* In place: of the same length. */
static void replace_serials(struct secrets *secrets, char *text, size_t size)
{
        for (size_t at = 0; at < size && !secrets->keep_serials; at++) {
                size_t begin = at;

                while (at < size && is_of_serials(text[at]))
                        at++;
                replace_serial(secrets, text + begin, at - begin);
        }
}

static void hide_learned(const struct secrets *secrets, const char *text, size_t size, bool *hidden)
{
        for (size_t i = 0; i < secrets->value_count; i++) {
                size_t length = strlen(secrets->values[i]);
                const char *at = text;

                while ((at = memmem(at, size - (size_t) (at - text), secrets->values[i], length)) != NULL) {
                        memset(hidden + (at - text), true, length * sizeof(*hidden));
                        at++;
                }
        }
}

static void append_shown(struct secrets *secrets, const char *text, size_t size, const bool *hidden,
                         struct text *out)
{
        for (size_t at = 0; at < size;) {
                size_t begin = at;

                while (at < size && hidden[at] == hidden[begin])
                        at++;
                secrets->masked += hidden[begin];
                if (hidden[begin])
                        text_append(out, SECRETS_MASK);
                else
                        text_append_bytes(out, text + begin, at - begin);
        }
}

void secrets_mask_text(struct secrets *secrets, const char *bytes, size_t size, struct text *out)
{
        CLEANUP(free_p) char *text = malloc(size + 1);
        CLEANUP(free_p) bool *hidden = calloc(size + 1, sizeof(*hidden));

        if (text == NULL || hidden == NULL) {
                secrets->failed = true;
                return;
        }
        memcpy(text, bytes, size);
        text[size] = '\0';
        hide_learned(secrets, text, size, hidden);
        secret_ranges_find(text, size, hidden);
        replace_serials(secrets, text, size);
        append_shown(secrets, text, size, hidden, out);
        secrets->failed = secrets->failed || out->failed;
}

/* A copy of a string, masked. */
static json_t *mask_string(struct secrets *secrets, const json_t *value)
{
        struct text out = { 0 };
        json_t *masked;

        secrets_mask_text(secrets, json_string_value(value), json_string_length(value), &out);
        masked = json_stringn_nocheck(out.data == NULL ? "" : out.data, out.size_bytes);
        if (!json_is_string(masked) || out.failed)
                secrets->failed = true;
        text_free(&out);
        return masked;
}

static bool is_field_of_serials(const char *key, const json_t *object)
{
        static const char *const keys[] = { "serial", "serialNumber", "uuid",
                                            "bootID", "systemUUID",   "machineID" };
        const char *pci = json_string_value(json_object_get(object, "pci"));
        const char *id = json_string_value(json_object_get(object, "id"));

        if (pci != NULL && id != NULL && strcmp(key, "id") == 0)
                return pci[0] != '\0' && strcmp(pci, id) != 0;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(key, keys[i]) == 0)
                        return true;
        return false;
}

/* Is this the value of a pair whose name is a secret's? */
static bool is_secret_pair(const json_t *object, const char *key)
{
        const json_t *name = json_object_get(object, "name");

        if (strcmp(key, "value") != 0)
                return false;
        if (name == NULL)
                name = json_object_get(object, "key");
        return json_is_string(name) && secret_name(json_string_value(name), json_string_length(name));
}

static bool is_secret_field(const json_t *object, const char *key)
{
        return secret_name(key, strlen(key)) || is_secret_pair(object, key);
}

/* "--token" in a list of arguments: what follows is its value. */
static bool is_secret_option(const json_t *word)
{
        const char *text = json_string_value(word);

        return text != NULL && text[0] == '-' && strpbrk(text, "=: ") == NULL &&
               secret_name(text, json_string_length(word));
}

static void study_at(struct secrets *secrets, const json_t *value, bool secret, unsigned depth)
{
        const json_t *item, *before = NULL;
        const char *key;
        size_t i;

        if (depth > DEPTH_MAX)
                return;
        if (secret && json_is_string(value))
                secrets_learn(secrets, json_string_value(value));
        json_array_foreach(value, i, item)
        {
                study_at(secrets, item, secret || is_secret_option(before), depth + 1);
                before = item;
        }
        json_object_foreach((json_t *) value, key, item)
        {
                if (json_is_string(item) && is_field_of_serials(key, value))
                        learn_serial(secrets, json_string_value(item));
                study_at(secrets, item, secret || is_secret_field(value, key), depth + 1);
        }
}

void secrets_study(struct secrets *secrets, const json_t *value)
{
        study_at(secrets, value, false, 0);
}

static json_t *mask_at(struct secrets *secrets, const json_t *value, bool secret, unsigned depth);

static json_t *mask_array(struct secrets *secrets, const json_t *array, bool secret, unsigned depth)
{
        json_t *copy = json_array(), *item;
        const json_t *before = NULL;
        size_t i;

        json_array_foreach(array, i, item)
        {
                if (json_array_append_new(
                            copy, mask_at(secrets, item, secret || is_secret_option(before), depth + 1)) < 0)
                        secrets->failed = true;
                before = item;
        }
        return copy;
}

static void mask_member(struct secrets *secrets, const json_t *object, const char *key, const json_t *item,
                        bool secret, unsigned depth, json_t *copy)
{
        struct text name = { 0 };

        secrets_mask_text(secrets, key, strlen(key), &name);
        if (json_object_set_new_nocheck(
                    copy, name.data == NULL ? "" : name.data,
                    mask_at(secrets, item, secret || is_secret_field(object, key), depth + 1)) < 0)
                secrets->failed = true;
        text_free(&name);
}

static json_t *mask_object(struct secrets *secrets, const json_t *object, bool secret, unsigned depth)
{
        json_t *copy = json_object(), *item;
        const char *key;

        json_object_foreach((json_t *) object, key, item)
                mask_member(secrets, object, key, item, secret, depth, copy);
        return copy;
}

static json_t *mask_at(struct secrets *secrets, const json_t *value, bool secret, unsigned depth)
{
        if (depth > DEPTH_MAX || (secret && (json_is_string(value) || json_is_number(value)))) {
                secrets->masked++;
                return json_string(SECRETS_MASK);
        }
        if (json_is_array(value))
                return mask_array(secrets, value, secret, depth);
        if (json_is_object(value))
                return mask_object(secrets, value, secret, depth);
        return json_is_string(value) ? mask_string(secrets, value) : json_copy((json_t *) value);
}

json_t *secrets_mask_json(struct secrets *secrets, const json_t *value)
{
        return mask_at(secrets, value, false, 0);
}

/* Return: was it JSON? */
static bool mask_json_line(struct secrets *secrets, const char *line, size_t size, struct text *out)
{
        json_t *value =
                size > 0 && line[0] == '{' ? json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
        json_t *masked = value == NULL ? NULL : secrets_mask_json(secrets, value);
        CLEANUP(free_p) char *dumped = masked == NULL ? NULL : json_dumps(masked, JSON_COMPACT);

        if (dumped != NULL)
                text_append(out, dumped);
        json_decref(value);
        json_decref(masked);
        return dumped != NULL;
}

/* Stretches between lines of JSON are masked as one: a key in PEM has many lines. */
void secrets_mask_lines(struct secrets *secrets, const char *bytes, size_t size, struct text *out)
{
        size_t begin = 0;

        for (size_t at = 0, end; at < size; at = end + 1) {
                const char *newline = memchr(bytes + at, '\n', size - at);
                struct text line = { 0 };

                end = newline == NULL ? size : (size_t) (newline - bytes);
                if (mask_json_line(secrets, bytes + at, end - at, &line)) {
                        secrets_mask_text(secrets, bytes + begin, at - begin, out);
                        text_append(out, line.data);
                        begin = end;
                }
                secrets->failed = secrets->failed || line.failed;
                text_free(&line);
        }
        secrets_mask_text(secrets, bytes + begin, size - begin, out);
        secrets->failed = secrets->failed || out->failed;
}
