/* Archives: names at their limits; what is written another tar reads back, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/gzip.h"
#include "io/ustar.h"
#include "io/write_all.h"

static const char *repeat(char c, size_t count)
{
        static char text[400];

        memset(text, c, count);
        text[count] = '\0';
        return text;
}

/* "pp...p/nn...n" */
static const char *split_name(size_t prefix, size_t name)
{
        static char text[400];

        memset(text, 'p', prefix);
        text[prefix] = '/';
        memset(text + prefix + 1, 'n', name);
        text[prefix + 1 + name] = '\0';
        return text;
}

static int add(const char *name)
{
        struct text archive = { 0 };
        struct err err = { 0 };
        int r = ustar_add(&archive, name, "x", 1, 1, &err);

        if (r < 0)
                assert_true(err.msg[0] != '\0' && archive.size_bytes == 0);
        text_free(&archive);
        return r;
}

static void names_have_limits(void **state)
{
        static const char *const wrong[] = { "",    "/",   "/a",   "a/",   "a//b",     "..",  "a/../b", ".",
                                             "./a", "a b", "a\nb", "a\\b", "\xc3\xa4", "a:b", "a*" };

        (void) state;
        assert_int_equal(add(repeat('n', 100)), 0);
        assert_int_equal(add(repeat('n', 101)), -ENAMETOOLONG);
        assert_int_equal(add(split_name(155, 100)), 0);
        assert_int_equal(add(split_name(156, 100)), -ENAMETOOLONG);
        assert_int_equal(add(split_name(155, 101)), -ENAMETOOLONG);
        assert_int_equal(add("a/.b/...c/d"), 0);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                if (add(wrong[i]) != -EINVAL)
                        fail_msg("'%s'", wrong[i]);
}

static void any_text_becomes_a_component(void **state)
{
        static const char *const texts[][2] = { { "../../etc/passwd", "_._.._etc_passwd" },
                                                { "", "_" },
                                                { ".", "_" },
                                                { "..", "_." },
                                                { "a b\n\xff", "a_b__" },
                                                { "node-1.x", "node-1.x" } };
        char name[64], small[5];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                ustar_name(texts[i][0], name, sizeof(name));
                assert_string_equal(name, texts[i][1]);
                assert_int_equal(add(name), 0);
        }
        ustar_name("abcdef", small, sizeof(small));
        assert_string_equal(small, "abcd");
}

/* Files of sizes around a block, and two names that are split. */
static void build(struct text *archive)
{
        static char bytes[2 * USTAR_BLOCK_BYTES];
        const size_t sizes[] = { 0, 1, 511, 512, 513, 1024 };
        struct err err = { 0 };
        char name[32];

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char) (i * 7 % 251);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                (void) snprintf(name, sizeof(name), "sizes/%zu", sizes[i]);
                assert_int_equal(ustar_add(archive, name, bytes, sizes[i], 1764288000, &err), 0);
        }
        assert_int_equal(ustar_add(archive, split_name(155, 100), "deep", 4, 1764288000, &err), 0);
        assert_int_equal(ustar_add(archive, repeat('n', 100), "long", 4, 1764288000, &err), 0);
        assert_int_equal(ustar_end(archive, &err), 0);
        assert_int_equal(archive->size_bytes % USTAR_BLOCK_BYTES, 0);
}

static const char reader[] = "import sys, tarfile\n"
                             "with tarfile.open(sys.argv[1], 'r:gz') as t:\n"
                             "    files = {m.name: (t.extractfile(m).read(), m) for m in t.getmembers()}\n"
                             "data = bytes(i * 7 % 251 for i in range(1024))\n"
                             "want = {f'sizes/{n}': data[:n] for n in (0, 1, 511, 512, 513, 1024)}\n"
                             "want.update({'p' * 155 + '/' + 'n' * 100: b'deep', 'n' * 100: b'long'})\n"
                             "assert {n: b for n, (b, _) in files.items()} == want, list(files)\n"
                             "assert all(m.isreg() and m.mode == 0o600 and m.uid == m.gid == 0 and m.mtime "
                             "== 1764288000 for _, m in files.values())\n";

static void another_tar_reads_it_back(void **state)
{
        char folder[] = "/tmp/remuda-ustar-XXXXXX", path[64], script[64], command[300];
        struct text archive = { 0 }, packed = { 0 };
        struct err err = { 0 };
        FILE *file;

        (void) state;
        build(&archive);
        assert_int_equal(gzip_append(&packed, archive.data, archive.size_bytes, &err), 0);
        assert_non_null(mkdtemp(folder));
        (void) snprintf(path, sizeof(path), "%s/a.tar.gz", folder);
        (void) snprintf(script, sizeof(script), "%s/read.py", folder);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(write_all(fileno(file), packed.data, packed.size_bytes), 0);
        (void) fclose(file);
        file = fopen(script, "we");
        assert_non_null(file);
        assert_int_equal(write_all(fileno(file), reader, strlen(reader)), 0);
        (void) fclose(file);
        (void) snprintf(command, sizeof(command), "python3 %s %s && test \"$(tar tzf %s | wc -l)\" = 8",
                        script, path, path);
        assert_int_equal(system(command), 0);
        (void) unlink(path);
        (void) unlink(script);
        (void) rmdir(folder);
        text_free(&archive);
        text_free(&packed);
}

static void no_room_is_an_error(void **state)
{
        struct text archive = { .max_bytes = 700 }, packed = { .max_bytes = 10 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(ustar_add(&archive, "a", repeat('x', 300), 300, 0, &err), -ENOMEM);
        assert_int_equal(ustar_end(&archive, &err), -ENOMEM);
        assert_int_equal(gzip_append(&packed, "abc", 3, &err), -ENOMEM);
        text_free(&archive);
        text_free(&packed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_have_limits),
                cmocka_unit_test(any_text_becomes_a_component),
                cmocka_unit_test(another_tar_reads_it_back),
                cmocka_unit_test(no_room_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
