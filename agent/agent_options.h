/* Options of remuda-agent; the rows are in agent_options.c. Strings are borrowed from the command line. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/options.h"

struct agent_options {
        const char *root;
        const char *machine;   /* NULL = a root */
        const char *node_name; /* NULL = the host's name */
        const char *listen;    /* "none" = no HTTP */
        const char *store;     /* "none", "dir:PATH", "kubernetes" */
        const char *kubeconfig;
        const char *kubelet_root;
        const char *kubelet_dir; /* NULL = of kubelet_root; "none" = no device plugin */
        const char *dra;     /* "auto", "off", "on", "only", "planned"; NULL = as the configuration says */
        const char *pod_uid; /* NULL = one instance alone */
        const char *cdi_dir; /* NULL = as the configuration says */
        const char *pod_resources; /* NULL = beside kubelet_dir; "none" = who holds what is not asked */
        const char *launch_socket; /* NULL = the default place, and going on without it */
        const char *config;
        const char *extender;        /* NULL = not served */
        const char *extender_config; /* NULL = defaults */
        const char *programs;        /* NULL = as the configuration says */
        const char *state;           /* NULL = the default place; "none" */
        const char *compat;          /* this and the next: NULL = as the configuration says */
        const char *log_format, *log_level;
        unsigned rescan_ms;
        bool check_config, dry_run;
};

extern const struct option_program agent_options_program;

#define AGENT_OPTIONS_NODE_BYTES 254

/* agent_options_name_node() - what the node is called: as the options say, or as this host. Return: 0 or a
 * negative errno. */
int agent_options_name_node(const struct agent_options *options, char ret[AGENT_OPTIONS_NODE_BYTES],
                            struct err *err);
