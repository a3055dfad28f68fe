/* Kernel log: files that grow, are replaced, and end in the middle of a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_line_of_the_buffer_is_taken_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
