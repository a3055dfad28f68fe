/* Kernel log: files that grow, are replaced, and end in the middle of a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "agent/health/kernel_log.h"
#include "base/cleanup.h"
#include "base/text.h"

#define SECONDS UINT64_C(1000000)

static unsigned faults;
static uint64_t last_code;

static void on_fault(void *userdata, const struct kernel_fault *fault)
{
        (void) userdata;
        faults++;
        last_code = fault->code;
}

static void take(struct kernel_log *log, const char *text, uint64_t now_usec)
{
        CLEANUP(free_p) char *copy = strdup(text);

        assert_non_null(copy);
        kernel_log_take_buffer(log, copy, now_usec);
}

#define XID(stamp, code)                                                                                     \
        "<3>[" stamp "] NVRM: Xid (PCI:0000:18:00): " code ", pid=1, GPU has fallen off the bus.\n"

/* clang-format off */
static const struct {
        const char *what, *text;
        uint64_t now_usec;
        unsigned faults;
        uint64_t code;
} steps[] = {
        { "a line that is history",                XID("   10.000001", "48"),                                      700 * SECONDS, 0, 0 },
        { "a fault",                               XID("   10.000001", "48") XID("  650.000000", "79"),            700 * SECONDS, 1, 79 },
        { "the same buffer again",                 XID("   10.000001", "48") XID("  650.000000", "79"),            701 * SECONDS, 0, 79 },
        { "another at the same microsecond",       XID("  650.000000", "79") XID("  650.000000", "95"),            702 * SECONDS, 1, 95 },
        { "both again, and a newer one",           XID("  650.000000", "79") XID("  650.000000", "95") XID("  651.5", "74"), 703 * SECONDS, 1, 74 },
        { "a buffer that has rolled over",         "half a line\n" XID("  702.000001", "79"),                      704 * SECONDS, 1, 79 },
        { "no stamps: not to be told from old",    "<3>NVRM: Xid (PCI:0000:18:00): 48, pid=1, x\n",              705 * SECONDS, 0, 79 },
        { "a line that says nothing",              "<6>[  704.000000] usb 1-1: new device\n",                     705 * SECONDS, 0, 79 },
        { "nothing",                               "",                                                             706 * SECONDS, 0, 79 },
        { "no end of line",                        "<3>[  705.000000] NVRM: Xid (PCI:0000:18:00): 48, pid=1, x",   707 * SECONDS, 1, 48 },
        { "what is no log",                        "[[[<<<]]]\n[\n<\n[99999999999999999999999999.1] x\n",          708 * SECONDS, 0, 48 },
};
/* clang-format on */

static void each_line_of_the_buffer_is_taken_once(void **state)
{
        char folder[] = "/tmp/remuda-kernel-log-XXXXXX";
        struct kernel_log *log = NULL;
        struct err err = { 0 };
        sd_event *loop = NULL;

        (void) state;
        assert_non_null(mkdtemp(folder));
        assert_int_equal(sd_event_new(&loop) < 0, 0);
        assert_int_equal(kernel_log_new(loop, folder, 0, on_fault, NULL, &log, &err), 0);
        assert_string_equal(kernel_log_way(log), "file");
        assert_string_equal(kernel_log_way(NULL), "none");
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                faults = 0;
                take(log, steps[i].text, steps[i].now_usec);
                if (faults != steps[i].faults || last_code != steps[i].code)
                        fail_msg("%s: want %u faults, the last %u; got %u, %u", steps[i].what,
                                 steps[i].faults, (unsigned) steps[i].code, faults, (unsigned) last_code);
        }
        kernel_log_free(log);
        (void) sd_event_unref(loop);
        (void) remove(folder);
}

#define RECORD(head, code) head "NVRM: Xid (PCI:0000:18:00): " code ", pid=1, GPU has fallen off the bus.\n"

/* clang-format off */
static const struct {
        const char *what, *text; /* of the whole file */
        unsigned faults;
        uint64_t code;
} files[] = {
        { "records, and one that is not whole", RECORD("6,10,5000,-;", "48") "6,11,6000,-;NVRM: Xid",             1, 48 },
        { "its rest",                           RECORD("6,10,5000,-;", "48") RECORD("6,11,6000,-;", "79"),        1, 79 },
        { "nothing new",                        RECORD("6,10,5000,-;", "48") RECORD("6,11,6000,-;", "79"),        0, 79 },
        { "a new file with a number seen",      RECORD("6,11,6000,-;", "95"),                                     0, 79 },
        { "a new file with a new number",       RECORD("6,12,-;", "74"),                                          1, 74 },
        { "words, and a fault behind them",     "usb 1-1: new device; 2, 3\n" RECORD("", "48"),                   1, 48 },
        { "heads that are none",                RECORD(";", "79"),                                                1, 79 },
        { "a number without a comma",           RECORD("6;", "95"),                                               1, 95 },
        { "a comma behind the words begin",     RECORD("x;6,1,2;", "74"),                                         1, 74 },
        { "a number, and no words",             "6,7\n" RECORD("12;,", "48"),                                     1, 48 },
};
/* clang-format on */

static void put(const char *path, const char *bytes, size_t size)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
}

static struct kernel_log *log_of(sd_event **loop, char *folder, char path[64])
{
        struct kernel_log *log = NULL;
        struct err err = { 0 };

        assert_non_null(mkdtemp(folder));
        assert_true(text_format(path, 64, "%s/dev", folder));
        assert_int_equal(mkdir(path, 0700), 0);
        assert_true(text_format(path, 64, "%s/dev/kmsg", folder));
        assert_int_equal(sd_event_new(loop) < 0, 0);
        assert_int_equal(kernel_log_new(*loop, folder, 0, on_fault, NULL, &log, &err), 0);
        return log;
}

static void forget(struct kernel_log *log, sd_event *loop, const char *folder, char path[64])
{
        kernel_log_free(log);
        (void) sd_event_unref(loop);
        (void) remove(path);
        assert_true(text_format(path, 64, "%s/dev", folder));
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(rmdir(folder), 0);
}

static void a_file_is_followed_from_where_it_was_read(void **state)
{
        char folder[] = "/tmp/remuda-kernel-log-XXXXXX", path[64];
        sd_event *loop = NULL;
        struct kernel_log *log = log_of(&loop, folder, path);

        (void) state;
        last_code = 0;
        kernel_log_poll(log); /* not there yet */
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                faults = 0;
                if (i > 2) { /* a file is new where it was seen to be shorter */
                        put(path, "", 0);
                        kernel_log_poll(log);
                }
                put(path, files[i].text, strlen(files[i].text));
                kernel_log_poll(log);
                if (faults != files[i].faults || last_code != files[i].code)
                        fail_msg("%s: want %u faults, the last %u; got %u, %u", files[i].what,
                                 files[i].faults, (unsigned) files[i].code, faults, (unsigned) last_code);
        }
        assert_int_equal(kernel_log_sequence(log), 12);
        assert_int_equal(kernel_log_sequence(NULL), 0);
        kernel_log_poll(NULL);
        forget(log, loop, folder, path);
}

/* What is no log is skipped, and does not keep what comes behind it from being read. */
static void a_file_that_is_no_log_is_skipped(void **state)
{
        enum { LARGE = 3 << 20 };
        char folder[] = "/tmp/remuda-kernel-log-XXXXXX", path[64];
        static const char fault[] = RECORD("", "79");
        sd_event *loop = NULL;
        struct kernel_log *log = log_of(&loop, folder, path);
        CLEANUP(free_p) char *large = malloc(LARGE + 1);
        FILE *file;

        (void) state;
        assert_non_null(large);
        memset(large, 'x', LARGE);
        for (unsigned i = 0; i < 3; i++) {
                static const char *const what[] = { "one endless line", "many lines", "bytes" };

                for (size_t at = 99; i == 1 && at < LARGE; at += 100)
                        large[at] = '\n';
                if (i == 2)
                        large[10] = '\0';
                put(path, large, LARGE);
                kernel_log_poll(log);
                if (i == 1)
                        kernel_log_poll(log), kernel_log_poll(log), kernel_log_poll(log);
                file = fopen(path, "a");
                assert_non_null(file);
                (void) fprintf(file, "\n%s", fault);
                assert_int_equal(fclose(file), 0);
                faults = 0;
                kernel_log_poll(log);
                if (faults != 1)
                        fail_msg("%s: %u faults", what[i], faults);
                put(path, "", 0);
                kernel_log_poll(log);
        }
        assert_int_equal(remove(path), 0);
        assert_int_equal(symlink("/dev/null", path), 0);
        kernel_log_poll(log); /* what is no file is never opened */
        assert_int_equal(remove(path), 0);
        assert_int_equal(symlink("kmsg2", path), 0);
        kernel_log_poll(log);
        forget(log, loop, folder, path);
}

/* A device that cannot be waited for: the kernel's buffer is asked instead, if that may be read. */
static void a_device_that_may_not_be_read_is_asked_for_or_said(void **state)
{
        char folder[] = "/tmp/remuda-kernel-log-XXXXXX", path[64];
        sd_event *loop = NULL;
        struct kernel_log *log = log_of(&loop, folder, path);
        struct err err = { 0 };
        int r;

        (void) state;
        kernel_log_free(log);
        log = NULL;
        if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0) { /* no right to make one */
                forget(NULL, loop, folder, path);
                print_message("no right to make a device\n");
                return;
        }
        r = kernel_log_new(loop, folder, 7, on_fault, NULL, &log, &err);
        if (r == 0) {
                assert_string_equal(kernel_log_way(log), "syslog");
                assert_int_equal(kernel_log_sequence(log), 0); /* its lines have no numbers */
                kernel_log_poll(log);
        } else {
                assert_null(log);
                assert_non_null(strstr(err.msg, "/dev/kmsg: "));
        }
        forget(log, loop, folder, path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_line_of_the_buffer_is_taken_once),
                cmocka_unit_test(a_file_is_followed_from_where_it_was_read),
                cmocka_unit_test(a_file_that_is_no_log_is_skipped),
                cmocka_unit_test(a_device_that_may_not_be_read_is_asked_for_or_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
