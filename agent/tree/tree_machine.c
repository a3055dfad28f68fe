/* Tree backend: a machine file, one text file that holds what discovery reads of a machine.
 *
 *     # remuda machine 1
 *     # anything a person should know: where it comes from, what is invented
 *     /sys/bus/pci/devices/0000:18:00.0 -> ../../../devices/pci0000:17/0000:17:00.0/0000:18:00.0
 *     /sys/devices/pci0000:17/0000:17:00.0/0000:18:00.0/vendor = 0x10de        content, a newline is added
 *     /sys/devices/pci0000:17/0000:17:00.0/0000:18:00.0/config hex de103023    bytes
 *     /proc/cpuinfo |                                                          lines; each begins with a tab
 *             processor : 0
 *     /sys/class/accel/                                                        an empty directory
 *     /dev/nvidia0 char 195 0                                                  a device node (block: block)
 *     /sys/x other                                                             a FIFO or a socket
 *
 * Directories that hold something need no line. In a path, blanks, '%', control and non-ASCII bytes are %XX.
 * Kept sorted by path, so that a directory is a range; each path and each directory above one has its place
 * in a hash table, since a path is looked up once for each of its components. */
#include "agent/tree/tree_machine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/tree/tree_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define MACHINE_FILE_BYTES ((size_t) 16 << 20)
#define MACHINE_ENTRIES    200000
#define MACHINE_HEAD       "# remuda machine 1"

/* Like strcmp, but '/' sorts before every other byte: what is below a directory follows it at once. */
static int path_compare(const char *a, const char *b)
{
        while (*a == *b && *a != '\0') {
                a++;
                b++;
        }
        if (*a == *b)
                return 0;
        if (*a == '/' || *b == '/')
                return *a == '\0' || (*a == '/' && *b != '\0') ? -1 : 1;
        return (unsigned char) *a < (unsigned char) *b ? -1 : 1;
}

/* Where the path is, or would be. Half of the table's places are none. */
static struct tree_machine_place *place_at(const struct tree_machine *machine, const char *path, size_t bytes)
{
        for (size_t at = (size_t) hash_bytes(path, bytes, 0);; at++) {
                struct tree_machine_place *place = &machine->places[at & (machine->place_room - 1)];

                if (place->bytes == 0 ||
                    (place->bytes == bytes && memcmp(machine->entries[place->first].path, path, bytes) == 0))
                        return place;
        }
}

/* NULL = there is none; also for the root. */
static const struct tree_machine_place *find_place(const struct tree_machine *machine, const char *path)
{
        const struct tree_machine_place *place = place_at(machine, path, strlen(path));

        return place->bytes > 0 ? place : NULL;
}

/* The entry of exactly this path. */
static const struct tree_machine_entry *entry_of(const struct tree_machine *machine,
                                                 const struct tree_machine_place *place)
{
        const struct tree_machine_entry *entry = place == NULL ? NULL : &machine->entries[place->first];

        return entry != NULL && entry->path[place->bytes] == '\0' ? entry : NULL;
}

static int machine_kind(void *state, const char *path)
{
        const struct tree_machine_place *place = find_place(state, path);
        const struct tree_machine_entry *entry = entry_of(state, place);

        if (entry != NULL)
                return (int) entry->kind;
        return path[0] == '\0' || place != NULL ? TREE_DIRECTORY : TREE_ABSENT;
}

/* The entry of exactly this path, which must be of that kind. Return: -EINVAL when it is of another, -ENOENT
 * when it is not there. */
static int find(const struct tree_machine *machine, const char *path, enum tree_kind kind,
                const struct tree_machine_entry **ret)
{
        const struct tree_machine_place *place = find_place(machine, path);

        *ret = entry_of(machine, place);
        if (*ret != NULL && (*ret)->kind == kind)
                return 0;
        return *ret != NULL || place != NULL || path[0] == '\0' ? -EINVAL : -ENOENT;
}

static ssize_t machine_link(void *state, const char *path, char *target, size_t target_bytes)
{
        const struct tree_machine_entry *entry;
        int r = find(state, path, TREE_LINK, &entry);

        if (r < 0)
                return r;
        return text_copy(target, target_bytes, entry->bytes) ? (ssize_t) entry->size_bytes : -ENAMETOOLONG;
}

static ssize_t machine_read(void *state, const char *path, void *buffer, size_t size_bytes)
{
        const struct tree_machine_entry *entry;
        int r = find(state, path, TREE_FILE, &entry);
        size_t size;

        if (r < 0)
                return r;
        size = entry->size_bytes < size_bytes ? entry->size_bytes : size_bytes;
        if (size > 0)
                memcpy(buffer, entry->bytes, size);
        return (ssize_t) size;
}

static int machine_list(void *state, const char *path, struct tree_names *ret)
{
        const struct tree_machine *machine = state;
        const struct tree_machine_place *place = find_place(machine, path);
        size_t skip = path[0] == '\0' ? 0 : strlen(path) + 1, first = place == NULL ? 0 : place->first;

        if (machine_kind(state, path) != TREE_DIRECTORY)
                return place == NULL ? -ENOENT : -EINVAL;
        for (size_t i = first + (entry_of(machine, place) != NULL); i < machine->count; i++) {
                const char *entry = machine->entries[i].path, *name = entry + skip;
                const char *last = ret->count > 0 ? ret->names[ret->count - 1] : "/";
                size_t length;
                int r;

                if (skip > 0 && (strncmp(entry, path, skip - 1) != 0 || entry[skip - 1] != '/'))
                        break;
                length = strcspn(name, "/");
                if (name[0] == '.' || (strlen(last) == length && strncmp(last, name, length) == 0))
                        continue;
                r = tree_names_add(ret, name, length);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void machine_entry_free(struct tree_machine_entry *entry)
{
        free(entry->path);
        free(entry->bytes);
}

static void machine_free(void *state)
{
        struct tree_machine *machine = state;

        if (machine == NULL)
                return;
        for (size_t i = 0; i < machine->count; i++)
                machine_entry_free(&machine->entries[i]);
        free(machine->entries);
        free(machine->places);
        free(machine);
}

static void machine_forget(void *state)
{
        (void) state; /* a file in memory does not change */
}

static const struct tree_backend machine_backend = {
        .kind = machine_kind,
        .link = machine_link,
        .link_below = machine_link,
        .read = machine_read,
        .list = machine_list,
        .forget = machine_forget,
        .free = machine_free,
};

const struct tree_machine *tree_machine_of(const struct tree *tree)
{
        return tree->backend == &machine_backend ? tree->state : NULL;
}

struct parser {
        const char *name; /* of the file, for messages */
        unsigned line;
        struct tree_machine *machine;
        size_t room;
        struct text lines; /* of the `|` entry that is open */
        bool open;
        struct err *err;
};

static int refuse(const struct parser *parser, const char *why)
{
        return err_set(parser->err, -EBADMSG, "machine file '%s' line %u: %s", parser->name, parser->line,
                       why);
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes %XX in place. Return: false if a byte is missing or is NUL. */
static bool unescape(char *path)
{
        char *out = path;

        for (const char *in = path; *in != '\0'; in++, out++) {
                if (*in != '%') {
                        *out = *in;
                        continue;
                }
                if (hex_digit(in[1]) < 0 || hex_digit(in[2]) < 0)
                        return false;
                *out = (char) (hex_digit(in[1]) << 4 | hex_digit(in[2]));
                if (*out == '\0')
                        return false;
                in += 2;
        }
        *out = '\0';
        return true;
}

/* No empty, "." or ".." component, so that looking up and writing out need no second thought. */
static bool clean(const char *path)
{
        for (const char *part = path;; part = strchr(part, '/') + 1) {
                size_t length = strcspn(part, "/");

                if (length == 0 || length > 255 || (length <= 2 && strncmp(part, "..", length) == 0))
                        return false;
                if (part[length] == '\0')
                        return strlen(path) < TREE_PATH_BYTES;
        }
}

static int add_entry(struct parser *parser, const char *path, size_t length, enum tree_kind kind,
                     struct tree_machine_entry **ret)
{
        struct tree_machine *machine = parser->machine;
        struct tree_machine_entry *entry;

        if (machine->count >= MACHINE_ENTRIES)
                return refuse(parser, "more entries than a machine may have");
        entry = array_add(&machine->entries, &machine->count, &parser->room, sizeof(*entry));
        if (entry != NULL)
                *entry = (struct tree_machine_entry){ .kind = kind, .path = strndup(path, length) };
        if (entry == NULL || entry->path == NULL) {
                machine->count -= entry != NULL;
                return err_set(parser->err, -ENOMEM, "no memory for machine file '%s'", parser->name);
        }
        if (!unescape(entry->path) || !clean(entry->path))
                return refuse(parser, "not a clean absolute path (blanks and '%' are written %XX)");
        *ret = entry;
        return 0;
}

static int set_bytes(struct parser *parser, struct tree_machine_entry *entry, const char *bytes, size_t size,
                     const char *end)
{
        size_t extra = strlen(end);

        entry->bytes = malloc(size + extra + 1);
        if (entry->bytes == NULL)
                return err_set(parser->err, -ENOMEM, "no memory for machine file '%s'", parser->name);
        if (size > 0)
                memcpy(entry->bytes, bytes, size);
        memcpy(entry->bytes + size, end, extra + 1);
        entry->size_bytes = size + extra;
        return 0;
}

static int set_hex(struct parser *parser, struct tree_machine_entry *entry, const char *digits)
{
        size_t length = strlen(digits);

        if (length % 2 != 0 || strspn(digits, "0123456789abcdefABCDEF") != length)
                return refuse(parser, "hex takes an even number of hexadecimal digits");
        entry->bytes = malloc(length / 2 + 1);
        if (entry->bytes == NULL)
                return err_set(parser->err, -ENOMEM, "no memory for machine file '%s'", parser->name);
        for (size_t i = 0; i < length / 2; i++)
                entry->bytes[i] = (char) ((unsigned) hex_digit(digits[2 * i]) << 4 |
                                          (unsigned) hex_digit(digits[2 * i + 1]));
        entry->size_bytes = length / 2;
        return 0;
}

static int set_node(struct parser *parser, struct tree_machine_entry *entry, char *numbers)
{
        char *second = strchr(numbers, ' ');
        uint64_t major, minor;

        if (second == NULL)
                return refuse(parser, "a device node takes two numbers");
        *second++ = '\0';
        if (text_parse_uint64(numbers, &major) < 0 || text_parse_uint64(second, &minor) < 0 ||
            major > UINT32_MAX || minor > UINT32_MAX)
                return refuse(parser, "a device node takes two numbers");
        entry->major = (unsigned) major;
        entry->minor = (unsigned) minor;
        return 0;
}

static int close_lines(struct parser *parser)
{
        struct tree_machine_entry *entry;
        size_t size = 0;

        if (!parser->open)
                return 0;
        parser->open = false;
        entry = &parser->machine->entries[parser->machine->count - 1];
        entry->bytes = text_take(&parser->lines, &size);
        entry->size_bytes = size;
        return entry->bytes == NULL ? err_set(parser->err, -ENOMEM, "no memory for machine file") : 0;
}

/* Is it an entry without a value, "" for a directory? @rest: what follows the path, at least a '/'. */
static bool stands_alone(const char *rest)
{
        if (rest[0] == '\0')
                return rest[-1] == '/';
        return strcmp(rest, " |") == 0 || strcmp(rest, " =") == 0 || strcmp(rest, " hex") == 0 ||
               strcmp(rest, " other") == 0;
}

static int parse_alone(struct parser *parser, const char *path, size_t length, const char *rest)
{
        bool directory = rest[0] == '\0', other = strcmp(rest, " other") == 0;
        enum tree_kind kind = directory ? TREE_DIRECTORY : other ? TREE_OTHER : TREE_FILE;
        struct tree_machine_entry *entry = NULL;
        int r = add_entry(parser, path, length - (directory && length > 0), kind, &entry);

        if (r < 0)
                return r;
        assert(entry != NULL);
        parser->open = strcmp(rest, " |") == 0;
        if (parser->open || kind != TREE_FILE)
                return 0;
        return set_bytes(parser, entry, "", 0, rest[1] == '=' ? "\n" : "");
}

static int set_value(struct parser *parser, struct tree_machine_entry *entry, bool hex, char *value)
{
        if (entry->kind == TREE_CHARACTER || entry->kind == TREE_BLOCK)
                return set_node(parser, entry, value);
        if (hex)
                return set_hex(parser, entry, value);
        if (entry->kind == TREE_LINK && (value[0] == '\0' || strlen(value) >= TREE_PATH_BYTES))
                return refuse(parser, "a link needs a target shorter than a path may be");
        return set_bytes(parser, entry, value, strlen(value), entry->kind == TREE_FILE ? "\n" : "");
}

/* What stands behind the path. `rest` is "" or begins with the blank. */
static int parse_rest(struct parser *parser, const char *path, size_t length, char *rest)
{
        static const struct {
                const char *word;
                enum tree_kind kind;
        } forms[] = {
                { " = ", TREE_FILE },         { " -> ", TREE_LINK },     { " hex ", TREE_FILE },
                { " char ", TREE_CHARACTER }, { " block ", TREE_BLOCK },
        };
        struct tree_machine_entry *entry;

        if (stands_alone(rest))
                return parse_alone(parser, path, length, rest);
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                int r;

                if (!text_starts_with(rest, forms[i].word))
                        continue;
                r = add_entry(parser, path, length, forms[i].kind, &entry);
                return r < 0 ? r
                             : set_value(parser, entry, forms[i].word[1] == 'h',
                                         rest + strlen(forms[i].word));
        }
        return refuse(parser,
                      "after a path comes '= TEXT', '|', 'hex DIGITS', '-> TARGET', 'char MAJOR MINOR', "
                      "'block MAJOR MINOR' or 'other'; a directory ends with '/'");
}

static int parse_line(struct parser *parser, char *line, size_t length)
{
        size_t path;
        int r;

        if (memchr(line, '\0', length) != NULL)
                return refuse(parser, "holds a NUL byte; write the content with 'hex'");
        if (line[0] == '\t') {
                if (!parser->open)
                        return refuse(parser, "a line of content that belongs to no '|' entry");
                text_append(&parser->lines, line + 1);
                text_append_char(&parser->lines, '\n');
                return 0;
        }
        r = close_lines(parser);
        if (r < 0 || length == 0 || line[0] == '#')
                return r;
        if (line[0] != '/')
                return refuse(parser,
                              "expected an absolute path, a comment or a line that begins with a tab");
        path = strcspn(line, " ");
        return parse_rest(parser, line + 1, path - 1, line + path);
}

static int by_path(const void *a, const void *b)
{
        return path_compare(((const struct tree_machine_entry *) a)->path,
                            ((const struct tree_machine_entry *) b)->path);
}

/* Nothing may lie below what is no directory, and no path may come twice. */
static int check_order(const struct parser *parser)
{
        const struct tree_machine *machine = parser->machine;

        for (size_t i = 1; i < machine->count; i++) {
                const struct tree_machine_entry *before = &machine->entries[i - 1],
                                                *entry = &machine->entries[i];
                size_t length = strlen(before->path);

                if (strcmp(before->path, entry->path) == 0)
                        return err_set(parser->err, -EBADMSG, "machine file '%s': '/%.120s' comes twice",
                                       parser->name, entry->path);
                if (before->kind != TREE_DIRECTORY && strncmp(before->path, entry->path, length) == 0 &&
                    entry->path[length] == '/')
                        return err_set(parser->err, -EBADMSG,
                                       "machine file '%s': '/%.120s' lies below what is no directory",
                                       parser->name, entry->path);
        }
        return 0;
}

/* Gives a place to every path that ends at or above the entry and not at or above the one before it: behind
 * "a/b/c", "a/d/e" gives one to "a/d" and "a/d/e". Return: how many; without a table they are only counted.
 */
static size_t place_entry(struct tree_machine *machine, size_t index)
{
        const char *path = machine->entries[index].path,
                   *before = index > 0 ? machine->entries[index - 1].path : "";
        size_t shared = 0, count = 0;

        while (path[shared] == before[shared]) /* they differ: no path comes twice */
                shared++;
        for (size_t end = strcspn(path, "/");; end += 1 + strcspn(path + end + 1, "/")) {
                bool known = end <= shared; /* '/' sorts first: at its own end the path before is above */

                count += !known;
                if (!known && machine->places != NULL)
                        *place_at(machine, path, end) =
                                (struct tree_machine_place){ (uint32_t) index, (uint32_t) end };
                if (path[end] == '\0')
                        return count;
        }
}

static int place_entries(const struct parser *parser)
{
        struct tree_machine *machine = parser->machine;
        size_t count = 0;

        for (size_t i = 0; i < machine->count; i++)
                count += place_entry(machine, i);
        for (machine->place_room = 2; machine->place_room < 2 * count;)
                machine->place_room *= 2;
        machine->places = calloc(machine->place_room, sizeof(*machine->places));
        if (machine->places == NULL)
                return err_set(parser->err, -ENOMEM, "no memory for machine file '%s'", parser->name);
        for (size_t i = 0; i < machine->count; i++)
                (void) place_entry(machine, i);
        return 0;
}

static int parse(struct parser *parser, char *bytes, size_t size_bytes)
{
        int r = 0;

        if (size_bytes < strlen(MACHINE_HEAD) || strncmp(bytes, MACHINE_HEAD, strlen(MACHINE_HEAD)) != 0) {
                parser->line = 1;
                return refuse(parser, "does not begin with '" MACHINE_HEAD "'");
        }
        for (char *line = bytes, *end = bytes + size_bytes; r == 0 && line < end;) {
                char *newline = memchr(line, '\n', (size_t) (end - line));
                size_t length = (size_t) ((newline != NULL ? newline : end) - line);

                parser->line++;
                line[length] = '\0';
                r = parse_line(parser, line, length);
                line += length + 1;
        }
        if (r == 0)
                r = close_lines(parser);
        if (r < 0)
                return r;
        if (parser->machine->count > 1)
                qsort(parser->machine->entries, parser->machine->count, sizeof(*parser->machine->entries),
                      by_path);
        r = check_order(parser);
        return r < 0 ? r : place_entries(parser);
}

int tree_machine_open_bytes(const char *name, const char *bytes, size_t size_bytes, struct tree **ret,
                            struct err *err)
{
        struct parser parser = { .name = name, .err = err, .lines.max_bytes = MACHINE_FILE_BYTES };
        CLEANUP(free_p) char *copy = NULL;
        struct tree *tree;
        int r;

        if (size_bytes > MACHINE_FILE_BYTES)
                return err_set(err, -E2BIG, "machine file '%s' is larger than %zu MiB", name,
                               MACHINE_FILE_BYTES >> 20);
        copy = malloc(size_bytes + 1);
        tree = calloc(1, sizeof(*tree));
        parser.machine = calloc(1, sizeof(*parser.machine));
        if (copy == NULL || tree == NULL || parser.machine == NULL) {
                free(tree);
                free(parser.machine);
                return err_set(err, -ENOMEM, "no memory for machine file '%s'", name);
        }
        if (size_bytes > 0)
                memcpy(copy, bytes, size_bytes);
        copy[size_bytes] = '\0';
        tree->backend = &machine_backend;
        tree->state = parser.machine;
        tree->operations_left = UINT64_MAX;
        (void) text_copy(tree->root, sizeof(tree->root), name);
        r = parse(&parser, copy, size_bytes);
        text_free(&parser.lines);
        if (r < 0) {
                tree_close(tree);
                return r;
        }
        *ret = tree;
        return 0;
}

int tree_machine_open(const char *path, struct tree **ret, struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        CLEANUP(free_p) char *bytes = NULL;
        struct stat st;
        size_t done = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, -errno, "machine file '%s' cannot be read: %m", path);
        if (!S_ISREG(st.st_mode))
                return err_set(err, -EINVAL, "machine file '%s' is not a regular file", path);
        if ((uint64_t) st.st_size > MACHINE_FILE_BYTES)
                return err_set(err, -E2BIG, "machine file '%s' is larger than %zu MiB", path,
                               MACHINE_FILE_BYTES >> 20);
        bytes = malloc((size_t) st.st_size + 1);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for machine file '%s'", path);
        while (done < (size_t) st.st_size) {
                ssize_t size = read(fd, bytes + done, (size_t) st.st_size - done);

                if (size < 0 && errno == EINTR)
                        continue;
                if (size < 0)
                        return err_set(err, -errno, "machine file '%s' cannot be read: %m", path);
                if (size == 0)
                        break;
                done += (size_t) size;
        }
        return tree_machine_open_bytes(path, bytes, done, ret, err);
}
