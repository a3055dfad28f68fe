/* Any bytes as JSON: the scan takes what the library takes, and both see the same values. Alone the library
 * ends at a NUL in a key and at a number beyond a double, the scan at a depth. What it takes, json_read()
 * reads. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/json/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *build(struct json_scan *scan);

static char *plain(const struct json_scan_slice *slice, size_t *ret_bytes)
{
        char *text = malloc(slice->size_bytes + 1);

        if (text == NULL)
                abort();
        *ret_bytes = json_scan_slice_unescape(slice, text);
        if (!slice->escaped && *ret_bytes != slice->size_bytes)
                abort();
        text[*ret_bytes] = '\0';
        return text;
}

static json_t *build_string(struct json_scan *scan)
{
        struct json_scan_slice slice;
        CLEANUP(free_p) char *text = NULL;
        size_t bytes;

        if (json_scan_string(scan, &slice, NULL) < 0)
                abort();
        text = plain(&slice, &bytes);
        return json_stringn(text, bytes);
}

static json_t *build_container(struct json_scan *scan, char bracket)
{
        json_t *container = bracket == '{' ? json_object() : json_array();

        if (json_scan_open(scan, bracket, NULL) < 0)
                abort();
        for (bool first = true;; first = false) {
                CLEANUP(free_p) char *key = NULL;
                struct json_scan_slice slice;
                size_t bytes;
                int r = json_scan_more(scan, bracket == '{' ? '}' : ']', first, NULL);

                if (r < 0 || (r == 1 && bracket == '{' && json_scan_key(scan, &slice, NULL) < 0))
                        abort();
                if (r == 0)
                        return container;
                if (bracket == '{')
                        key = plain(&slice, &bytes);
                if ((bracket == '{' ? json_object_set_new(container, key, build(scan))
                                    : json_array_append_new(container, build(scan))) < 0)
                        abort();
        }
}

/* The tree of a text that the scan takes, by its own steps; every number a real. NULL: it is none for it. */
static json_t *build(struct json_scan *scan)
{
        char kind = json_scan_kind(scan);
        struct json_scan_slice slice;

        if (kind == '{' || kind == '[')
                return build_container(scan, kind);
        if (kind == '"')
                return build_string(scan);
        if (json_scan_value(scan, &slice, NULL) < 0)
                abort();
        if (kind == '0')
                return json_real(strtod(slice.bytes, NULL));
        return kind == 'n' ? json_null() : json_boolean(kind == 't');
}

/* The library takes "9\0": it puts back the byte behind a number, and what it put back ends at a NUL. */
static bool is_beyond_the_scan(const char *text, size_t size, const struct err *err)
{
        return memchr(text, '\0', size) != NULL || strstr(err->msg, "nested too deeply") != NULL;
}

static bool is_beyond_the_library(const json_error_t *error)
{
        enum json_error_code code = json_error_code(error);

        return code == json_error_null_byte_in_key || code == json_error_numeric_overflow;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(free_p) char *text = malloc(size + 1);
        struct json_scan scan;
        struct json_scan_slice whole;
        struct err err = { 0 };
        json_error_t error;
        json_t *tree, *built, *read;
        bool taken;

        if (text == NULL)
                return 0;
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        scan = json_scan_text(text, size);
        taken = json_scan_value(&scan, &whole, &err) == 0 && json_scan_end(&scan, &err) == 0;
        tree = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
        if (taken ? tree == NULL && !is_beyond_the_library(&error)
                  : tree != NULL && !is_beyond_the_scan(text, size, &err))
                abort();
        if (taken && tree != NULL) {
                scan = json_scan_text(text, size);
                built = build(&scan);
                if (json_scan_end(&scan, NULL) < 0 || !json_equal(built, tree))
                        abort();
                json_decref(built);
        }
        read = json_read(text, size, JSON_DECODE_ANY, &err);
        if (read == NULL && (taken || err.msg[0] == '\0'))
                abort();
        json_decref(read);
        json_decref(tree);
        return 0;
}
