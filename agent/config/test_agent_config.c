/* A configuration is read in full; a mistake is told with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/config/agent_config.h"
#include "base/cleanup.h"
#include "base/text.h"

static int parse(const char *text, struct agent_config *ret, struct err *err)
{
        return agent_config_parse("agent.yaml", text, strlen(text), ret, err);
}

static void an_empty_file_is_the_defaults(void **state)
{
        static const struct health_rules rules = HEALTH_RULES_DEFAULT;
        struct agent_config c;

        (void) state;
        assert_int_equal(agent_config_parse("none", NULL, 0, &c, NULL), 0);
        assert_int_equal(c.node_class, NODE_CLASS_ANY);
        assert_string_equal(c.pool, "regular");
        assert_memory_equal(&c.health, &rules, sizeof(rules));
        assert_true(c.probes_enabled);
        agent_config_free(&c);
}

static void everything_is_read(void **state)
{
        static const char text[] = "nodeClass: multi\n"
                                   "pool: reserved\n"
                                   "exclude:\n"
                                   "- {pci: \"0000:18:00.0\"}\n"
                                   "- model: \"T4*\"\n"
                                   "  numa: 1\n"
                                   "health:\n"
                                   "  recoveryProbes: 1\n"
                                   "  recoverySeconds: 0\n"
                                   "  rules: {link-width: ignore, xid-94: unhealthy}\n"
                                   "probes: {deadlineSeconds: 2, libraries: {nvidia: /x.so}}\n"
                                   "repair: {nvidia: {path: /bin/true, args: [a, b], maxPerDay: 2}}\n"
                                   "launch: {group: staff}\n"
                                   "compat: dcgm\n"
                                   "logFormat: json\n"
                                   "logLevel: warning\n";
        struct device d = { .pci = "0000:18:00.0", .model = "A100", .numa = 0 };
        struct err err = { 0 };
        struct agent_config c;

        (void) state;
        if (parse(text, &c, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(c.node_class, NODE_CLASS_MULTI);
        assert_string_equal(c.pool, "reserved");
        assert_int_equal(c.health.recovery_usec, 0);
        assert_int_equal(c.probes_deadline_sec, 2);
        assert_string_equal(agent_config_library(&c, "nvidia"), "/x.so");
        assert_null(agent_config_library(&c, "amd"));
        assert_string_equal(agent_config_repair(&c, "nvidia")->args[1], "b");
        assert_int_equal(c.compat, COMPAT_DCGM);
        assert_string_equal(c.log_format, "json");
        assert_string_equal(c.log_level, "warning");
        assert_int_equal(agent_config_level(&c, "link-width", FINDING_BAD), FINDING_GOOD);
        assert_int_equal(agent_config_level(&c, "xid-94", FINDING_GOOD), FINDING_BAD);
        assert_int_equal(agent_config_level(&c, "other", FINDING_DEGRADED), FINDING_DEGRADED);
        assert_true(discovery_options_exclude(&c.discovery, &d));
        (void) text_copy(d.pci, sizeof(d.pci), "0000:19:00.0");
        assert_false(discovery_options_exclude(&c.discovery, &d));
        (void) text_copy(d.model, sizeof(d.model), "T4-16GB");
        assert_false(discovery_options_exclude(&c.discovery, &d));
        d.numa = 1;
        assert_true(discovery_options_exclude(&c.discovery, &d));
        agent_config_free(&c);
}

/* clang-format off */
static const struct {
        const char *what, *text, *place; /* the message begins with this */
} mistakes[] = {
        { "not YAML",                "a: [1",                              "agent.yaml: " },
        { "not an object",           "- 1\n",                              "agent.yaml:1: " },
        { "an unknown key",          "pool: regular\nnodeclass: multi\n",  "agent.yaml:2: nodeclass: " },
        { "an unknown key inside",   "health:\n  recoveryProbs: 3\n",      "agent.yaml:2: health.recoveryProbs: " },
        { "an unknown class",        "\n\nnodeClass: many\n",              "agent.yaml:3: nodeClass: " },
        { "a pool with a blank",     "pool: my pool\n",                    "agent.yaml:1: pool: " },
        { "zero probes",             "health:\n  probeSeconds: 5\n  recoveryProbes: 0\n",
                                                                           "agent.yaml:3: health.recoveryProbes: " },
        { "a negative time",         "health: {recoverySeconds: -1}\n",    "agent.yaml:1: health.recoverySeconds: " },
        { "more flaps than memory",  "health: {flapChanges: 16}\n",        "agent.yaml:1: health.flapChanges: " },
        { "a text for a number",     "health: {flapChanges: many}\n",      "agent.yaml:1: health.flapChanges: " },
        { "an unknown level",        "health:\n rules:\n  xid-79: fatal\n","agent.yaml:3: health.rules.xid-79: " },
        { "an empty exclude rule",   "exclude:\n- {}\n",                   "agent.yaml:1: exclude[0]: " },
        { "a model without a PCI id","discovery: {models: [{vendor: x, name: y}]}\n",
                                                                           "agent.yaml:1: discovery.models[0].pci: " },
        { "one PCI id for two",      "discovery: {models: [{vendor: x, pci: 10de, name: y}]}\n", "agent.yaml:1: discovery.models[0].pci: must be two PCI ids" },
        { "a PCI id of five digits", "discovery: {models: [{vendor: x, pci: '10de:12345', name: y}]}\n", "agent.yaml:1: discovery.models[0].pci: " },
        { "a PCI id that is none",   "discovery: {models: [{vendor: x, pci: '10de:zzzz', name: y}]}\n", "agent.yaml:1: discovery.models[0].pci: " },
        { "the vendor 0000",         "discovery: {models: [{vendor: x, pci: '0000:1234', name: y}]}\n", "agent.yaml:1: discovery.models[0].pci: " },
        { "PCI ids as a number",     "discovery: {models: [{vendor: x, pci: 7, name: y}]}\n", "agent.yaml:1: discovery.models[0].pci: must be a string" },
        { "a model without a name",  "discovery: {models: [{vendor: x, pci: '10de:0x1234', name: ''}]}\n", "agent.yaml:1: discovery.models[0].name: must be a name" },
        { "a memory that is none",   "discovery: {models: [{vendor: x, pci: '10de:1234', name: y, memory: much}]}\n", "agent.yaml:1: discovery.models[0].memory: must be a quantity" },
        { "a memory below nothing",  "discovery: {models: [{vendor: x, pci: '10de:1234', name: y, memory: '-1'}]}\n", "agent.yaml:1: discovery.models[0].memory: must be a quantity" },
        { "a vendor in capitals",    "discovery: {vendors: [{name: Acme, pci: '1234'}]}\n", "agent.yaml:1: discovery.vendors[0].name: must be a word" },
        { "a vendor without a name", "discovery: {vendors: [{name: '', pci: '1234'}]}\n", "agent.yaml:1: discovery.vendors[0].name: must be a word" },
        { "a vendor's wrong id",     "discovery: {vendors: [{name: acme, pci: '12'}]}\n", "agent.yaml:1: discovery.vendors[0].pci: must be a PCI id" },
        { "a class that is none",    "discovery: {vendors: [{name: acme, pci: '1234', classes: ['12']}]}\n", "agent.yaml:1: discovery.vendors[0].classes[0]: must be a PCI id" },
        { "a node elsewhere",        "discovery: {vendors: [{name: acme, pci: '1234', node: /etc/x}]}\n", "agent.yaml:1: discovery.vendors[0].node: must be a path" },
        { "a node that climbs",      "discovery: {vendors: [{name: acme, pci: '1234', node: /dev/../x}]}\n", "agent.yaml:1: discovery.vendors[0].node: must be a path" },
        { "a key in JSON's quotes",  "{\"pool\" : \"my pool\"}\n",       "agent.yaml:1: pool: " },
        { "a word before its key",   "# pool and more\npool: my pool\n",  "agent.yaml:2: pool: " },
        { "a key written otherwise", "\"po\\u006fl\": my pool # pool ",   "agent.yaml:1: pool: " },
        { "a key that is a path",    "\n.x: 1\n",                         "agent.yaml:2: .x: " },
        { "exclude is no list",      "exclude: {pci: x}\n",                "agent.yaml:1: exclude: " },
        { "a relative repair",       "repair:\n  amd:\n    path: reset\n", "agent.yaml:3: repair.amd.path: " },
        { "a repair without a path", "repair:\n  amd: {args: [x]}\n",      "agent.yaml:2: repair.amd.path: " },
        { "an unknown compat",       "compat: nagios\n",                   "agent.yaml:1: compat: " },
        { "an unknown form of logs", "logFormat: xml\n",                   "agent.yaml:1: logFormat: " },
        { "an unknown level",        "logLevel: debug\n",                  "agent.yaml:1: logLevel: " },
        { "a word that the key is in", "# repool: x\n# no-pool: y\npool: my pool\n", "agent.yaml:3: pool: " },
        { "a quoted key",            "{\"nodeClass\" : \"any\",\n 'pool' : \"my pool\"}\n", "agent.yaml:2: pool: " },
        { "an empty pool",           "pool: ''\n",                        "agent.yaml:1: pool: " },
        { "a pool that is a number", "pool: 7\n",                         "agent.yaml:1: pool: " },
};
/* clang-format on */

static void a_mistake_is_told_with_file_and_line(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
                struct err err = { 0 };
                struct agent_config c;
                int r = parse(mistakes[i].text, &c, &err);

                if (r != -EBADMSG || !text_starts_with(err.msg, mistakes[i].place))
                        fail_msg("%s: want \"%s...\", got %d \"%s\"", mistakes[i].what, mistakes[i].place, r,
                                 err.msg);
                agent_config_free(&c);
        }
}

static void a_file_has_an_end_and_nobody_need_listen(void **state)
{
        enum agent_config_compat compat = COMPAT_NONE;
        struct err err = { 0 };
        struct agent_config c;

        (void) state;
        assert_true(agent_config_compat_parse("otel", &compat) && compat == COMPAT_OTEL);
        assert_false(agent_config_compat_parse("nagios", &compat)); /* of --compat */
        assert_int_equal(compat, COMPAT_OTEL);
        assert_int_equal(agent_config_parse("agent.yaml", "", AGENT_CONFIG_MAX_BYTES + 1, &c, &err), -E2BIG);
        assert_non_null(strstr(err.msg, "agent.yaml: larger than "));
        assert_int_equal(parse("pool: ''\n", &c, NULL), -EBADMSG);
        assert_string_equal(c.pool, "regular");
        agent_config_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_file_is_the_defaults),
                cmocka_unit_test(everything_is_read),
                cmocka_unit_test(a_mistake_is_told_with_file_and_line),
                cmocka_unit_test(a_file_has_an_end_and_nobody_need_listen),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
