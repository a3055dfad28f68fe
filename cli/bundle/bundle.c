/* Files are kept as they came until the archive is made. */
#include "cli/bundle/bundle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/timestamp.h"
#include "base/version.h"
#include "base/yaml/yaml_dump.h"
#include "cli/command/table.h"
#include "io/gzip.h"
#include "io/ustar.h"

#define LEAF_BYTES   2048 /* of the last component before it is shortened */
#define HASH_DIGITS  16
#define ENDING_BYTES 8

void bundle_free(struct bundle *bundle)
{
        for (size_t i = 0; i < bundle->file_count; i++) {
                json_decref(bundle->files[i].json);
                free(bundle->files[i].bytes);
        }
        free(bundle->files);
        json_decref(bundle->missing);
        secrets_free(&bundle->secrets);
        *bundle = (struct bundle){ 0 };
}

void bundle_miss(struct bundle *bundle, const char *source, const char *fmt, ...)
{
        char why[600], what[BUNDLE_NAME_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        (void) text_copy(what, sizeof(what), source);
        table_clean(why);
        table_clean(what);
        if (bundle->missing == NULL)
                bundle->missing = json_array();
        if (json_array_append_new(bundle->missing, json_pack("{s:s, s:s}", "source", what, "why", why)) < 0)
                bundle->failed = true;
}

/* "part.part", each part cleaned. Return: does it fit? */
static bool join(const char *const *parts, char leaf[LEAF_BYTES])
{
        size_t length = 0;

        for (; *parts != NULL; parts++) {
                char part[LEAF_BYTES];

                ustar_name(*parts, part, sizeof(part));
                if (!text_format(leaf + length, LEAF_BYTES - length, "%s%s", part,
                                 parts[1] == NULL ? "" : "."))
                        return false;
                length += strlen(leaf + length);
        }
        return true;
}

/* One that an archive has no room for: its beginning, a hash of all of it, and how it ended. Names of a
 * namespace and a job alone may have more bytes than a component. */
static void shorten(char *leaf)
{
        const char *dot = strrchr(leaf, '.');
        char hex[SHA256_HEX_BYTES], end[ENDING_BYTES + 1] = "";
        struct sha256 hash;

        if (strlen(leaf) <= USTAR_LAST_BYTES)
                return;
        if (dot != NULL && strlen(dot) < sizeof(end))
                (void) text_copy(end, sizeof(end), dot);
        sha256_init(&hash);
        sha256_update(&hash, leaf, strlen(leaf));
        sha256_final_hex(&hash, hex);
        (void) snprintf(leaf + USTAR_LAST_BYTES - 1 - HASH_DIGITS - strlen(end),
                        1 + HASH_DIGITS + sizeof(end), "-%.*s%s", HASH_DIGITS, hex, end);
}

/* "folder/part.part". Return: does it fit? */
static bool file_name(const char *folder, const char *const *parts, char name[BUNDLE_NAME_BYTES])
{
        char leaf[LEAF_BYTES] = "";
        bool whole = join(parts, leaf);

        shorten(leaf);
        return text_format(name, BUNDLE_NAME_BYTES, "%s/%s", folder, leaf) && whole;
}

static bool is_taken(const struct bundle *bundle, const char *name)
{
        for (size_t i = 0; i < bundle->file_count; i++)
                if (strcmp(bundle->files[i].name, name) == 0)
                        return true;
        return false;
}

/* The place of a file of so many bytes; NULL: it is missing, and that is said. */
static struct bundle_file *add(struct bundle *bundle, const char *folder, const char *const *parts,
                               size_t size)
{
        struct bundle_file *file;
        char name[BUNDLE_NAME_BYTES];

        if (!file_name(folder, parts, name)) {
                bundle_miss(bundle, name, "its name is too long");
        } else if (is_taken(bundle, name)) {
                bundle_miss(bundle, name, "there are two of this name");
        } else if (size > BUNDLE_FILE_BYTES || bundle->size_bytes + size > BUNDLE_BYTES) {
                bundle_miss(bundle, name,
                            "no room: it has %zu bytes; a file has %zu at most, all together %zu", size,
                            BUNDLE_FILE_BYTES, BUNDLE_BYTES);
        } else {
                file = array_add(&bundle->files, &bundle->file_count, &bundle->file_capacity, sizeof(*file));
                bundle->failed = bundle->failed || file == NULL;
                if (file == NULL)
                        return NULL;
                memcpy(file->name, name, sizeof(file->name));
                bundle->size_bytes += size;
                return file;
        }
        return NULL;
}

void bundle_add_bytes(struct bundle *bundle, const char *folder, const char *const *parts, const char *bytes,
                      size_t size)
{
        struct bundle_file *file = add(bundle, folder, parts, size);

        if (file == NULL)
                return;
        file->bytes = malloc(size + 1);
        if (file->bytes == NULL) {
                bundle->failed = true;
                return;
        }
        memcpy(file->bytes, bytes, size);
        file->size_bytes = size;
}

void bundle_add_json(struct bundle *bundle, const char *folder, const char *const *parts, json_t *value)
{
        CLEANUP(free_p)
        char *text = value == NULL ? NULL : json_dumps(value, JSON_INDENT(1) | JSON_ENCODE_ANY);
        struct bundle_file *file = text == NULL ? NULL : add(bundle, folder, parts, strlen(text));

        bundle->failed = bundle->failed || text == NULL;
        if (file == NULL)
                json_decref(value);
        else
                file->json = value;
}

void bundle_serials_are_masked(struct bundle *bundle)
{
        if (bundle->file_count > 0)
                bundle->files[bundle->file_count - 1].serials_masked = true;
}

static void study(struct bundle *bundle)
{
        for (size_t i = 0; i < bundle->file_count; i++)
                secrets_study(&bundle->secrets, bundle->files[i].json);
}

static void mask_file(struct bundle *bundle, const struct bundle_file *file, struct text *out)
{
        json_t *masked = file->json == NULL ? NULL : secrets_mask_json(&bundle->secrets, file->json);
        CLEANUP(free_p)
        char *text = masked == NULL ? NULL : json_dumps(masked, JSON_INDENT(1) | JSON_ENCODE_ANY);

        if (file->json == NULL && file->bytes != NULL)
                secrets_mask_lines(&bundle->secrets, file->bytes, file->size_bytes, out);
        else if (text != NULL)
                text_append(out, text);
        else
                bundle->failed = true;
        json_decref(masked);
        bundle->failed = bundle->failed || bundle->secrets.failed || out->failed;
}

/* What a reader wants to know before he opens another file. Reasons are masked, too: they quote. */
static json_t *manifest(struct bundle *bundle, json_t *files, uint64_t now_usec)
{
        json_t *missing =
                bundle->missing == NULL ? json_array() : secrets_mask_json(&bundle->secrets, bundle->missing);
        char now[TIMESTAMP_BYTES];

        return json_pack(
                "{s:s, s:s, s:O, s:o, s:{s:I, s:I, s:[s, s, s, s, s]}}", "made",
                timestamp_format(now_usec, now), "by", "remuda " REMUDA_VERSION, "files", files, "missing",
                missing, "masked", "values", (json_int_t) bundle->secrets.masked, "serials",
                (json_int_t) bundle->secrets.serials_masked, "how",
                SECRETS_MASK
                " stands for tokens, passwords, keys, cookies and bearer headers, users in URLs, and what "
                "variables and fields of such names hold",
                bundle->secrets.full
                        ? "there were more values than are remembered: some of them are masked only "
                          "where a name or their form gives them away"
                        : "the same value is masked wherever else it stands, if it has 8 bytes; "
                          "where an end was not certain, more was",
                bundle->secrets.serials_full
                        ? "serial numbers are others; there were more than are remembered: some stand as "
                          "they are"
                        : "serial numbers, UUIDs of devices and boot ids are others of the same form, equal "
                          "for equal",
                "variables of jobs' pods, their arguments and annotations of others are left out altogether",
                "names of nodes, namespaces, pods, images and addresses are as they are: look before you "
                "send it");
}

struct packing {
        struct bundle *bundle;
        struct text body; /* of the archive, behind the MANIFEST */
        json_t *files;
        uint64_t now_sec;
        char root[64];
};

static int put(struct packing *p, struct text *archive, const char *name, const struct text *bytes,
               struct err *err)
{
        char path[BUNDLE_NAME_BYTES + sizeof(p->root) + 1];

        (void) text_format(path, sizeof(path), "%s/%s", p->root, name);
        return ustar_add(archive, path, bytes->data == NULL ? "" : bytes->data, bytes->size_bytes, p->now_sec,
                         err);
}

static int put_file(struct packing *p, const struct bundle_file *file, struct err *err)
{
        size_t masked = p->bundle->secrets.masked, size;
        struct text bytes = { 0 };
        int r;

        p->bundle->secrets.keep_serials = file->serials_masked;
        mask_file(p->bundle, file, &bytes);
        p->bundle->secrets.keep_serials = false;
        r = put(p, &p->body, file->name, &bytes, err);
        size = bytes.size_bytes;
        text_free(&bytes);
        if (r < 0 && r != -ENOMEM) { /* the others are worth having without it */
                bundle_miss(p->bundle, file->name, "%s", err->msg);
                return 0;
        }
        if (r == 0 &&
            json_array_append_new(p->files,
                                  json_pack("{s:s, s:I, s:I}", "name", file->name, "bytes", (json_int_t) size,
                                            "masked", (json_int_t) (p->bundle->secrets.masked - masked))) < 0)
                p->bundle->failed = true;
        return r;
}

static int put_manifest(struct packing *p, uint64_t now_usec, struct text *archive, struct err *err)
{
        json_t *page = manifest(p->bundle, p->files, now_usec);
        CLEANUP(free_p) char *yaml = page == NULL ? NULL : yaml_dump(page);
        struct text text = { 0 };
        int r;

        p->bundle->failed = p->bundle->failed || yaml == NULL;
        text_append(&text, yaml == NULL ? "" : yaml);
        r = put(p, archive, "MANIFEST", &text, err);
        text_free(&text);
        json_decref(page);
        return r;
}

static void name_root(struct packing *p, uint64_t now_usec)
{
        char now[TIMESTAMP_BYTES];

        (void) timestamp_format(now_usec - now_usec % 1000000, now);
        (void) text_format(p->root, sizeof(p->root), "remuda-support-%s", now);
        for (char *c = p->root; *c != '\0'; c++)
                if (*c == ':')
                        *c = '-';
}

int bundle_pack(struct bundle *bundle, uint64_t now_usec, struct text *archive, struct err *err)
{
        struct packing p = { .bundle = bundle, .files = json_array(), .now_sec = now_usec / 1000000 };
        struct text tar = { 0 };
        int r = 0;

        name_root(&p, now_usec);
        study(bundle);
        for (size_t i = 0; i < bundle->file_count && r == 0; i++)
                r = put_file(&p, &bundle->files[i], err);
        if (r == 0)
                r = put_manifest(&p, now_usec, &tar, err);
        text_append_bytes(&tar, p.body.data, p.body.size_bytes);
        if (r == 0)
                r = ustar_end(&tar, err);
        if (r == 0 && bundle->failed)
                r = err_set(err, -ENOMEM, "no memory for the bundle");
        if (r == 0)
                r = gzip_append(archive, tar.data, tar.size_bytes, err);
        text_free(&tar);
        text_free(&p.body);
        json_decref(p.files);
        return r;
}
