/* Configuration: the file of --config as all its readers see it: read at the start, and again by SIGHUP or
 * when it changes. One with a mistake is refused with its line, and what was read before goes on. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/agent_options.h"
#include "agent/config/agent_config.h"
#include "base/err.h"
#include "io/log.h"
#include "plugin/plugin_config.h"

struct configuration {
        struct agent_config agent;
        struct plugin_config *plugin; /* NULL before the first load */
};

/* configuration_load() - from the file, or the defaults without one. *configuration is as before unless 0 is
 * returned. */
int configuration_load(const struct agent_options *options, struct configuration *configuration,
                       struct err *err);
void configuration_free(struct configuration *configuration);

/* configuration_apply_log() - the form and level of @log; what the command line says is stronger. */
void configuration_apply_log(const struct agent_options *options, const struct configuration *configuration,
                             struct log *log);

struct configuration_watch;

/* configuration_watch_new() - @changed: SIGHUP came, or the file (NULL = there is none) is another one. */
int configuration_watch_new(sd_event *loop, struct log *log, const char *path,
                            void (*changed)(void *userdata), void *userdata, struct configuration_watch **ret,
                            struct err *err);
void configuration_watch_free(struct configuration_watch *watch); /* accepts NULL */
