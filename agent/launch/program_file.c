/* Program file: reading the table, and hashing what it names. */
#include "agent/launch/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"

/* Reads one byte more than allowed, so that the parser can tell "too large". */
static int read_all(int fd, struct text *content)
{
        char buffer[16384];
        ssize_t size;

        while (content->size_bytes <= PROGRAM_TABLE_MAX_BYTES) {
                size = read(fd, buffer, sizeof(buffer));
                if (size < 0 && errno == EINTR)
                        continue;
                if (size < 0)
                        return -errno;
                if (size == 0)
                        break;
                text_append_bytes(content, buffer, (size_t) size);
        }
        return content->failed ? -ENOMEM : 0;
}

static int parse(const struct text *content, struct program_table *ret, struct err *err)
{
        json_t *value = NULL;
        int r;

        if (content->size_bytes > PROGRAM_TABLE_MAX_BYTES)
                return err_set(err, -E2BIG, "larger than %zu bytes; a program table is a short list",
                               PROGRAM_TABLE_MAX_BYTES);
        r = yaml_parse(content->data == NULL ? "" : content->data, content->size_bytes, &value, err);
        if (r < 0)
                return r;
        r = program_table_decode(value, ret, err);
        json_decref(value);
        return r;
}

int program_file_load(const char *path, struct program_table *ret, struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        struct text content = { 0 };
        int r;

        *ret = (struct program_table){ 0 };
        if (fd < 0)
                return err_set(err, -errno, "program table '%.200s': %m; name another with --programs FILE",
                               path);
        r = read_all(fd, &content);
        if (r < 0)
                err_set(err, r, "%s", strerror(-r));
        else
                r = parse(&content, ret, err);
        text_free(&content);
        return r < 0 ? err_wrap(err, r, "program table '%.200s'", path) : 0;
}

static int hash_file(int fd, char ret[SHA256_HEX_BYTES])
{
        static const size_t chunk_bytes = (size_t) 1 << 16;
        CLEANUP(free_p) uint8_t *chunk = malloc(chunk_bytes);
        struct sha256 hash;
        ssize_t size;

        if (chunk == NULL)
                return -ENOMEM;
        sha256_init(&hash);
        while ((size = read(fd, chunk, chunk_bytes)) != 0) {
                if (size < 0 && errno != EINTR)
                        return -errno;
                if (size > 0)
                        sha256_update(&hash, chunk, (size_t) size);
        }
        sha256_final_hex(&hash, ret);
        return 0;
}

static int check_content(const struct program_table_row *program, char ret[SHA256_HEX_BYTES], struct err *err)
{
        CLEANUP(close_p) int fd = open(program->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        int r = fd < 0 ? -errno : hash_file(fd, ret);

        if (r < 0)
                return err_set(err, r, "programs.%s.path: '%.200s' cannot be read to be hashed: %s",
                               program->runtime, program->path, strerror(-r));
        if (program->sha256[0] != '\0' && strcmp(program->sha256, ret) != 0)
                return err_set(err, -EKEYREJECTED,
                               "programs.%s.sha256: '%.150s' has %s, not the table's %s; restore the program "
                               "or mend "
                               "the table",
                               program->runtime, program->path, ret, program->sha256);
        return 0;
}

int program_file_check(const struct program_table_row *program, char *ret_sha256, struct err *err)
{
        char digest[SHA256_HEX_BYTES] = "";
        struct stat status;
        int r;

        if (stat(program->path, &status) < 0)
                return err_set(err, errno == EACCES ? -EACCES : -ENOENT,
                               "programs.%s.path: '%.200s': %m; install the program or mend the table",
                               program->runtime, program->path);
        if (!S_ISREG(status.st_mode) || access(program->path, X_OK) < 0)
                return err_set(err, -EACCES,
                               "programs.%s.path: '%.200s' is not a file that may be executed; `chmod +x` it "
                               "or mend "
                               "the table",
                               program->runtime, program->path);
        if (ret_sha256 != NULL || program->sha256[0] != '\0') {
                r = check_content(program, digest, err);
                if (r < 0)
                        return r;
        }
        if (ret_sha256 != NULL)
                (void) text_copy(ret_sha256, SHA256_HEX_BYTES, digest);
        return 0;
}

static bool is_named_as_script(const char *word)
{
        static const char *const endings[] = { ".py", ".sh", ".pl", ".rb", ".js", ".lua", ".jl", ".R" };
        const char *name = strrchr(word, '/'), *ending = strrchr(name == NULL ? word : name, '.');

        for (size_t i = 0; ending != NULL && i < ARRAY_SIZE(endings); i++)
                if (strcmp(ending, endings[i]) == 0)
                        return true;
        return false;
}

bool program_file_script(const char *word, char ret_sha256[SHA256_HEX_BYTES])
{
        CLEANUP(close_p) int fd = -1;
        struct stat status;
        char mark[2];

        if (stat(word, &status) < 0 || !S_ISREG(status.st_mode) ||
            status.st_size > PROGRAM_FILE_SCRIPT_MAX_BYTES)
                return false;
        fd = open(word, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd >= 0 &&
               (is_named_as_script(word) ||
                (pread(fd, mark, sizeof(mark), 0) == sizeof(mark) && memcmp(mark, "#!", 2) == 0)) &&
               hash_file(fd, ret_sha256) == 0;
}

static int may_execute(const char *path)
{
        struct stat status;

        if (stat(path, &status) < 0)
                return -ENOENT;
        return S_ISREG(status.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int program_file_find(const char *name, char *ret, size_t ret_bytes)
{
        const char *path = getenv("PATH");
        CLEANUP(free_p) char *copy = strdup(path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path);
        char *rest = copy, *folder;

        if (strchr(name, '/') != NULL)
                return text_copy(ret, ret_bytes, name) ? may_execute(ret) : -ENOENT;
        while (copy != NULL && (folder = strsep(&rest, ":")) != NULL)
                if (folder[0] == '/' && text_format(ret, ret_bytes, "%s/%s", folder, name) &&
                    may_execute(ret) == 0)
                        return 0;
        return -ENOENT;
}
