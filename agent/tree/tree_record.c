/* Tree record and expand: from what was read to a machine file, and from a machine file to directories. */
#include "agent/tree/tree_record.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tree/tree_internal.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/secrets/serials.h"
#include "io/write_all.h"

struct tree_record {
        void *root; /* tsearch(3) tree of struct tree_machine_entry, by path */
        bool failed;
};

static int by_path(const void *a, const void *b)
{
        return strcmp(((const struct tree_machine_entry *) a)->path,
                      ((const struct tree_machine_entry *) b)->path);
}

static void entry_free(void *node)
{
        struct tree_machine_entry *entry = node;

        if (entry == NULL)
                return;
        free(entry->path);
        free(entry->bytes);
        free(entry);
}

void tree_record_free(struct tree_record *recording)
{
        if (recording == NULL)
                return;
        tdestroy(recording->root, entry_free);
        free(recording);
}

int tree_record_begin(struct tree *tree, struct err *err)
{
        tree_record_free(tree->recording);
        tree->recording = calloc(1, sizeof(*tree->recording));
        return tree->recording == NULL ? err_set(err, -ENOMEM, "no memory to record") : 0;
}

/* The first content stays: a file that is read twice, the second time further, keeps the longer one. */
static void entry_fill(struct tree_machine_entry *entry, enum tree_kind kind, const void *bytes, size_t size,
                       bool *failed)
{
        entry->kind = kind;
        if (bytes == NULL || (entry->bytes != NULL && entry->size_bytes >= size))
                return;
        free(entry->bytes);
        entry->bytes = calloc(1, size + 1);
        if (entry->bytes == NULL) {
                *failed = true;
                entry->size_bytes = 0;
                return;
        }
        if (size > 0)
                memcpy(entry->bytes, bytes, size);
        entry->size_bytes = size;
}

void tree_record_note(struct tree_record *recording, const char *path, enum tree_kind kind, const void *bytes,
                      size_t size_bytes)
{
        struct tree_machine_entry key = { .path = (char *) path }, *entry;
        void *found;

        if (recording == NULL || kind == TREE_ABSENT || path[0] == '\0')
                return;
        found = tfind(&key, &recording->root, by_path);
        if (found != NULL) {
                entry_fill(*(struct tree_machine_entry **) found, kind, bytes, size_bytes,
                           &recording->failed);
                return;
        }
        entry = calloc(1, sizeof(*entry));
        if (entry == NULL || (entry->path = strdup(path)) == NULL ||
            tsearch(entry, &recording->root, by_path) == NULL) {
                entry_free(entry);
                recording->failed = true;
                return;
        }
        entry_fill(entry, kind, bytes, size_bytes, &recording->failed);
}

/* Files that are a serial number as a whole, by their name. */
static bool is_serial(const char *path)
{
        static const char *const names[] = { "serial",  "serial_number", "unique_id",  "uuid",
                                             "chip_id", "tt_serial",     "tt_asic_id", "address",
                                             "boot_id", "hostname",      "serial_num", "product_uuid",
                                             "guid",    "node_guid",     "sn" };
        const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return false;
}

/* Lines of longer files that carry one: the value behind the key is masked. */
static void mask_lines(char *text)
{
        static const char *const keys[] = { "GPU UUID:", "unique_id ", "hive_id ", "Serial", "Video BIOS:" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                for (char *at = text; (at = strstr(at, keys[i])) != NULL;) {
                        at += strlen(keys[i]);
                        at += strspn(at, " \t:");
                        if (strncmp(at, "GPU-", 4) == 0)
                                at += 4;
                        serials_mask(at, strcspn(at, " \t\n"));
                }
}

static void mask_entry(struct tree_machine_entry *entry)
{
        if (entry->kind != TREE_FILE || entry->bytes == NULL || memchr(entry->bytes, '\0', entry->size_bytes))
                return;
        if (!is_serial(entry->path)) {
                mask_lines(entry->bytes);
                return;
        }
        for (char *at = entry->bytes; *at != '\0';) {
                at += strspn(at, " \t\n");
                serials_mask(at, strcspn(at, " \t\n"));
                at += strcspn(at, " \t\n");
        }
}

static void write_path(const char *path, struct text *out)
{
        text_append_char(out, '/');
        for (; *path != '\0'; path++) {
                unsigned char c = (unsigned char) *path;

                if (c <= ' ' || c == '%' || c >= 0x7f)
                        text_printf(out, "%%%02x", c);
                else
                        text_append_char(out, (char) c);
        }
}

/* Can the content be written as lines of text? */
static bool is_text(const char *bytes, size_t size)
{
        if (size == 0 || bytes[size - 1] != '\n')
                return false;
        for (size_t i = 0; i < size; i++)
                if (((unsigned char) bytes[i] < ' ' && bytes[i] != '\n' && bytes[i] != '\t') ||
                    bytes[i] == 0x7f)
                        return false;
        return true;
}

static void write_content(const char *bytes, size_t size, struct text *out)
{
        if (!is_text(bytes, size)) {
                text_append(out, " hex ");
                for (size_t i = 0; i < size; i++)
                        text_printf(out, "%02x", (unsigned char) bytes[i]);
                text_append_char(out, '\n');
                return;
        }
        if (memchr(bytes, '\n', size - 1) == NULL) {
                text_append(out, " = ");
                text_append_bytes(out, bytes, size);
                return;
        }
        text_append(out, " |\n");
        for (const char *line = bytes; line < bytes + size;) {
                size_t length = (size_t) ((const char *) memchr(line, '\n', size) - line) + 1;

                text_append_char(out, '\t');
                text_append_bytes(out, line, length);
                line += length;
        }
}

static void write_entry(const struct tree_machine_entry *entry, struct text *out)
{
        write_path(entry->path, out);
        switch (entry->kind) {
        case TREE_FILE:
                write_content(entry->bytes != NULL ? entry->bytes : "", entry->size_bytes, out);
                break;
        case TREE_LINK:
                text_printf(out, " -> %s\n", entry->bytes);
                break;
        case TREE_DIRECTORY:
                text_append(out, "/\n");
                break;
        case TREE_CHARACTER:
        case TREE_BLOCK:
                text_printf(out, " %s %u %u\n", entry->kind == TREE_BLOCK ? "block" : "char", entry->major,
                            entry->minor);
                break;
        case TREE_OTHER:
        case TREE_ABSENT:
                text_append(out, " other\n");
                break;
        }
}

struct writing {
        struct text *out;
        bool mask;
};

static void write_node(const void *node, VISIT visit, void *userdata)
{
        struct tree_machine_entry *entry = *(struct tree_machine_entry *const *) node;
        const struct writing *writing = userdata;

        if (visit != postorder && visit != leaf)
                return;
        if (writing->mask)
                mask_entry(entry);
        write_entry(entry, writing->out);
}

int tree_record_take(const struct tree *tree, bool mask, struct text *out, struct err *err)
{
        struct writing writing = { .out = out, .mask = mask };

        if (tree->recording == NULL || tree->recording->failed)
                return err_set(err, -ENOMEM, "not everything could be recorded: no memory");
        twalk_r(tree->recording->root, write_node, &writing);
        return out->failed ? err_set(err, -ENOMEM, "no memory for the record") : 0;
}

/* Makes every directory above `path` (and `path` itself when `whole`) below the directory `fd`. */
static int make_directories(int fd, const char *path, bool whole, struct err *err)
{
        char prefix[TREE_PATH_BYTES];

        for (const char *at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
                if (at == path)
                        continue;
                memcpy(prefix, path, (size_t) (at - path));
                prefix[at - path] = '\0';
                if (mkdirat(fd, prefix, 0755) < 0 && errno != EEXIST)
                        return err_set(err, -errno, "make directory '%s': %m", prefix);
        }
        if (whole && mkdirat(fd, path, 0755) < 0 && errno != EEXIST)
                return err_set(err, -errno, "make directory '%s': %m", path);
        return 0;
}

static int write_file(int fd, const struct tree_machine_entry *entry, struct err *err)
{
        CLEANUP(close_p) int file = openat(fd, entry->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        int r;

        if (file < 0)
                return err_set(err, -errno, "create '%s': %m", entry->path);
        r = write_all(file, entry->bytes, entry->kind == TREE_FILE ? entry->size_bytes : 0);
        return r < 0 ? err_set(err, r, "write '%s': %s", entry->path, strerrordesc_np(-r)) : 0;
}

static int expand_entry(int fd, const struct tree_machine_entry *entry, struct err *err)
{
        int r = make_directories(fd, entry->path, entry->kind == TREE_DIRECTORY, err);

        if (r < 0 || entry->kind == TREE_DIRECTORY)
                return r;
        if (entry->kind != TREE_LINK)
                return write_file(fd, entry, err);
        return symlinkat(entry->bytes, fd, entry->path) < 0
                       ? err_set(err, -errno, "link '%s': %m", entry->path)
                       : 0;
}

int tree_record_expand(const struct tree *tree, const char *directory, struct err *err)
{
        const struct tree_machine *machine = tree_machine_of(tree);
        CLEANUP(close_p) int fd = -1;

        if (machine == NULL)
                return err_set(err, -EINVAL, "'%s' is no machine file", tree_root(tree));
        if (mkdir(directory, 0755) < 0 &&
            (errno != EEXIST || rmdir(directory) < 0 || mkdir(directory, 0755) < 0))
                return err_set(err, -errno, "directory '%s' must be absent or empty: %m", directory);
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_set(err, -errno, "open '%s': %m", directory);
        /* Links come last, so that no path of the file is written through one. */
        for (int links = 0; links < 2; links++)
                for (size_t i = 0; i < machine->count; i++) {
                        int r = 0;

                        if ((machine->entries[i].kind == TREE_LINK) == (links == 1))
                                r = expand_entry(fd, &machine->entries[i], err);
                        if (r < 0)
                                return r;
                }
        return 0;
}
