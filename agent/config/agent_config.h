/* Agent configuration: the YAML file that an operator writes for a node, as a struct.
 *
 *   nodeClass: multi                 # single | multi | any: which jobs the node is for
 *   pool: regular                    # regular | reserved | a name of yours
 *   health:
 *     recoveryProbes: 3              # good answers in a row ...
 *     recoverySeconds: 60            # ... over this long, and a bad device is healthy again
 *     flapChanges: 3                 # more turns than these ...
 *     flapSeconds: 600               # ... in this long: quarantined
 *     quarantineSeconds: 600         # until this long was quiet
 *     probeSeconds: 10               # between two looks at a device (1 while one is not well)
 *     rules: {link-width: ignore, xid-94: unhealthy}   # ignore | degraded | unhealthy, by the rule's name
 *   probes:                          # vendor libraries, in a child process per vendor
 *     enabled: true
 *     seconds: 10
 *     deadlineSeconds: 5
 *     libraries: {nvidia: /opt/lib/libnvidia-ml.so.1}
 *   repair: {nvidia: {path: /usr/sbin/reset-gpu, args: [--id], maxPerDay: 2}}
 *   launch: {group: remuda, programs: /etc/remuda/programs.yaml}
 *   nodeFeatureFile: /etc/kubernetes/node-feature-discovery/features.d/remuda
 *   compat: dcgm                     # also serve DCGM's metric names, or OpenTelemetry's: otel
 *   logFormat: json                  # text | json: lines on standard error
 *   logLevel: warning                # info | warning | error: those of this weight and above
 *   discovery, exclude               # agent/discovery/discovery_config.h
 *   resources, plugin                # read by the plugin: plugin/plugin_config.h
 *
 * In memory only. Strict: what is not known is an error that names the line. The config owns its arrays. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/discovery/discovery_options.h"
#include "agent/health/health.h"
#include "agent/inventory/inventory.h"
#include "base/err.h"

#define AGENT_CONFIG_MAX_BYTES ((size_t) 1 << 20)
#define RULE_LEVELS_MAX        128
#define VENDOR_SETTINGS_MAX    32
#define REPAIR_ARGS_MAX        16
#define REPAIR_ARG_BYTES       100

struct agent_config_rule {
        char rule[48];
        enum finding_level level; /* FINDING_GOOD = ignore */
};

struct agent_config_library {
        char vendor[24];
        char path[200];
};

struct agent_config_repair {
        char vendor[24];
        char path[200];
        char args[REPAIR_ARGS_MAX][REPAIR_ARG_BYTES];
        size_t arg_count;
        unsigned max_per_day;
};

/* Whose metric names are served beside ours. */
enum agent_config_compat { COMPAT_NONE, COMPAT_DCGM, COMPAT_OTEL };

/* agent_config_compat_parse() - "none", "dcgm", "otel". Return: false = it is none of these. */
bool agent_config_compat_parse(const char *word, enum agent_config_compat *ret);

struct agent_config {
        enum node_class node_class;
        char pool[64];
        struct discovery_options discovery; /* `discovery:` and `exclude:` */
        struct health_rules health;
        unsigned probe_sec;
        struct agent_config_rule *rule_levels;
        size_t rule_level_count;
        bool probes_enabled;
        unsigned probes_sec, probes_deadline_sec;
        struct agent_config_library *libraries;
        size_t library_count;
        struct agent_config_repair *repairs;
        size_t repair_count;
        char launch_group[32], programs_path[200];
        char node_feature_file[200]; /* "" = none */
        enum agent_config_compat compat;
        char log_format[8], log_level[12]; /* words of io/log.h */
        json_t *root;                      /* the whole file, for the plugin that reads its own keys */
};

/* agent_config_parse() - @name: of the file, for messages ("agent.yaml:12: health.recoveryProbes: must
 * be...")
 * @bytes: NULL = the configuration of an empty file
 * @ret: initialised by the call; released with agent_config_free(); defaults unless 0 is returned
 * Return: 0; -EBADMSG, -E2BIG or -ENOMEM. */
int agent_config_parse(const char *name, const char *bytes, size_t size_bytes, struct agent_config *ret,
                       struct err *err);
void agent_config_free(struct agent_config *config); /* accepts NULL */

/* agent_config_level() - what the operator makes of a rule's finding; `level` where nothing is said. */
enum finding_level agent_config_level(const struct agent_config *config, const char *rule,
                                      enum finding_level level);

/* agent_config_library(), agent_config_repair() - of a vendor; NULL = none. */
const char *agent_config_library(const struct agent_config *config, const char *vendor);
const struct agent_config_repair *agent_config_repair(const struct agent_config *config, const char *vendor);

/* agent_config_at() - put "FILE:LINE: " in front of a message of json_field.h, by looking for the path's keys
 * in the file; for the parts that read their own keys. Return: -EBADMSG. */
int agent_config_at(const char *name, const char *bytes, size_t size_bytes, struct err *err);
