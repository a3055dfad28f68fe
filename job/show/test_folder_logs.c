/* Lines of files that grow, begin anew, or are longer than anybody wants to see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/show/folder_logs.h"

static char folder[] = "/tmp/remuda-logs-XXXXXX";

static void path_of(char path[PATH_MAX], const char *file)
{
        assert_true(text_format(path, PATH_MAX, "%s/%s", folder, file));
}

static void put(const char *file, const char *mode, const char *text)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[PATH_MAX];

        path_of(path, file);
        f = fopen(path, mode);
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
}

static void add_line(void *userdata, size_t rank, const char *line)
{
        text_printf(userdata, "%zu:%.20s|", rank, line);
}

static void reads(struct folder_logs *logs, struct text *lines, const char *expected)
{
        assert_non_null(logs);
        folder_logs_read(logs, 0);
        assert_string_equal(lines->data == NULL ? "" : lines->data, expected);
        text_reset(lines);
}

static void lines_are_whole(void **state)
{
        struct text lines = { 0 };
        struct folder_logs *logs = folder_logs_new(folder, 2, FOLDER_LOGS_ALL, 0, add_line, &lines);

        (void) state;
        reads(logs, &lines, "");
        put("rank-0.out", "we", "one\ntw");
        put("rank-1.err", "we", "warns\n");
        put("rank-2.out", "we", "of no rank\n");
        reads(logs, &lines, "0:one|1:warns|");
        put("rank-0.out", "ae", "o\n\nhalf");
        reads(logs, &lines, "0:two|0:|");
        folder_logs_finish(logs);
        assert_string_equal(lines.data, "0:half|");
        folder_logs_free(logs);
        text_free(&lines);
}

static void a_world_that_begins_anew_is_read_from_its_beginning(void **state)
{
        struct text lines = { 0 };
        struct folder_logs *logs = folder_logs_new(folder, 0, 0, 0, add_line, &lines);

        (void) state;
        put("rank-0.out", "we", "a long first world\nthat ends in");
        reads(logs, &lines, "0:a long first world|");
        put("rank-0.out", "we", "second\n");
        reads(logs, &lines, "0:that ends in|0:second|"); /* two lines, not one of both */
        folder_logs_free(logs);
        text_free(&lines);
}

static void of_a_file_that_is_there_the_tail_is_read(void **state)
{
        static const struct {
                uint64_t tail_bytes;
                const char *lines; /* of "111\n222\n333\n" */
        } cases[] = {
                { 4, "0:333|" },
                { 5, "0:333|" },
                { 7, "0:333|" },
                { 8, "0:222|0:333|" },
                { 3, "" },
                { 1, "" },
                { 12, "0:111|0:222|0:333|" },
                { 0, "0:111|0:222|0:333|" },
        };

        (void) state;
        put("rank-0.out", "we", "111\n222\n333\n");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct text lines = { 0 };
                struct folder_logs *logs =
                        folder_logs_new(folder, 0, 0, cases[i].tail_bytes, add_line, &lines);

                reads(logs, &lines, cases[i].lines);
                put("rank-0.out", "ae", "444\n");
                reads(logs, &lines, "0:444|"); /* what comes later is read whole */
                put("rank-0.out", "we", "111\n222\n333\n");
                folder_logs_free(logs);
                text_free(&lines);
        }
}

static void a_call_reads_no_more_than_it_may(void **state)
{
        struct text lines = { 0 };
        struct folder_logs *logs = folder_logs_new(folder, 0, 0, 0, add_line, &lines);

        (void) state;
        put("rank-0.out", "we", "111\n222\n333\n");
        assert_non_null(logs);
        assert_true(folder_logs_read(logs, 6));
        assert_string_equal(lines.data, "0:111|");
        folder_logs_read(logs, 6);
        assert_string_equal(lines.data, "0:111|0:222|0:333|");
        folder_logs_free(logs);
        text_free(&lines);
}

static void measure_line(void *userdata, size_t rank, const char *line)
{
        (void) rank;
        *(size_t *) userdata = strlen(line);
}

static void of_a_line_without_end_the_beginning_is_kept(void **state)
{
        CLEANUP(free_p) char *block = malloc(FOLDER_LOGS_LINE_BYTES + 100);
        size_t line_bytes = 0;
        struct folder_logs *logs = folder_logs_new(folder, 0, 0, 0, measure_line, &line_bytes);

        (void) state;
        assert_non_null(block);
        assert_non_null(logs);
        memset(block, 'x', FOLDER_LOGS_LINE_BYTES + 99);
        block[FOLDER_LOGS_LINE_BYTES + 99] = '\0';
        put("rank-0.out", "we", block);
        put("rank-0.out", "ae", "\n");
        folder_logs_read(logs, 0);
        assert_int_equal(line_bytes, FOLDER_LOGS_LINE_BYTES);
        folder_logs_free(logs);
}

static int make_folder(void **state)
{
        (void) state;
        return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
        static const char *const files[] = { "rank-0.out", "rank-1.err", "rank-2.out" };
        char path[PATH_MAX];

        (void) state;
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                path_of(path, files[i]);
                (void) unlink(path);
        }
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_whole),
                cmocka_unit_test(a_world_that_begins_anew_is_read_from_its_beginning),
                cmocka_unit_test(of_a_file_that_is_there_the_tail_is_read),
                cmocka_unit_test(a_call_reads_no_more_than_it_may),
                cmocka_unit_test(of_a_line_without_end_the_beginning_is_kept),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
