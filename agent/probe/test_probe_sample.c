/* Probe sample: lines of a probe, which is another program and may say anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "agent/probe/probe_sample.h"
#include "base/cleanup.h"
#include "base/text.h"

#define FINDING(level, rule, reason, message)                                                                \
        "{\"pci\": \"0000:18:00.0\", \"level\": " level ", \"rule\": " rule ", \"reason\": " reason          \
        ", \"message\": " message "}"

/* clang-format off */
static const struct {
        const char *what, *line;
        int r;
        enum finding_level level;
        unsigned refused;
        const char *message;
} rows[] = {
        { "a device alone",          "{\"pci\": \"0000:18:00.0\"}", 0, FINDING_GOOD, 0, "" },
        { "no JSON",                 "{", -EBADMSG, FINDING_GOOD, 0, "" },
        { "no object",               "[]", -EBADMSG, FINDING_GOOD, 0, "" },
        { "no device",               "{}", -EBADMSG, FINDING_GOOD, 0, "" },
        { "a number for a device",   "{\"pci\": 7}", -EBADMSG, FINDING_GOOD, 0, "" },
        { "an address too long",     "{\"pci\": \"0000:18:00.0-and-some-more-of-it\"}", -EBADMSG, FINDING_GOOD, 0, "" },
        { "figures of other kinds",  "{\"pci\": \"0000:18:00.0\", \"temperature\": \"hot\", \"power\": -1e9}", 0, FINDING_GOOD, 0, "" },
        { "a finding",               FINDING("\"degraded\"", "\"ecc-rows\"", "\"EccErrors\"", "\"4 rows\""), 0, FINDING_DEGRADED, 0, "4 rows" },
        { "one with a line's end",   FINDING("\"degraded\"", "\"ecc\"", "\"Ecc\"", "\"a\\nb\\tc\""), 0, FINDING_DEGRADED, 0, "a?b?c" },
        { "no such level",           FINDING("\"awful\"", "\"ecc\"", "\"Ecc\"", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "a number for a rule",     FINDING("\"degraded\"", "7", "\"Ecc\"", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "a number for a reason",   FINDING("\"degraded\"", "\"ecc\"", "7", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "a number for a message",  FINDING("\"degraded\"", "\"ecc\"", "\"Ecc\"", "7"), -EBADMSG, FINDING_GOOD, 0, "" },
        { "no rule",                 FINDING("\"degraded\"", "\"\"", "\"Ecc\"", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "a blank in the rule",     FINDING("\"degraded\"", "\"e c\"", "\"Ecc\"", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "no reason",               FINDING("\"degraded\"", "\"ecc\"", "\"\"", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "a dash in the reason",    FINDING("\"degraded\"", "\"ecc\"", "\"Ecc-x\"", "\"\""), -EBADMSG, FINDING_GOOD, 0, "" },
        { "all is well, in words",   FINDING("\"good\"", "\"\"", "\"\"", "\"fine\""), 0, FINDING_GOOD, 0, "" },
};
/* clang-format on */

static void each_line_is_taken_or_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct probe_sample sample;
                unsigned refused = 0;
                int r = probe_sample_decode(rows[i].line, strlen(rows[i].line), &sample, &refused, NULL);

                if (r != rows[i].r)
                        fail_msg("%s: %d", rows[i].what, r);
                if (r == 0 && (sample.finding.level != rows[i].level ||
                               strcmp(sample.finding.message, rows[i].message) != 0))
                        fail_msg("%s: %d '%s'", rows[i].what, (int) sample.finding.level,
                                 sample.finding.message);
        }
}

/* Every figure at both of its bounds, and just past them. */
static void figures_have_bounds(void **state)
{
        (void) state;
        for (size_t i = 0; i < PROBE_VALUE_COUNT; i++) {
                const struct probe_sample_field *field = &probe_sample_fields[i];
                const double values[] = { field->minimum, field->maximum, field->minimum - 1,
                                          field->maximum * 2 + 1 };

                for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
                        CLEANUP(text_free) struct text line = { 0 };
                        struct probe_sample sample;
                        unsigned refused = 0;

                        text_printf(&line, "{\"pci\": \"0000:18:00.0\", \"%s\": %.17g}", field->key,
                                    values[k]);
                        assert_int_equal(
                                probe_sample_decode(line.data, line.size_bytes, &sample, &refused, NULL), 0);
                        if (refused != k / 2 || isnan(sample.values[i]) != (k >= 2))
                                fail_msg("%s of %g: %u refused", field->key, values[k], refused);
                        if (k >= 2)
                                continue;
                        text_free(&line);
                        probe_sample_encode(&sample, &line);
                        assert_int_equal(
                                probe_sample_decode(line.data, line.size_bytes - 1, &sample, NULL, NULL), 0);
                        assert_true(fabs(sample.values[i] - values[k]) <= 1e-9 * fabs(values[k]));
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_line_is_taken_or_refused),
                cmocka_unit_test(figures_have_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
