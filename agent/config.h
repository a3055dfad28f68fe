/* Config: the configuration file of a running agent: read at the start, and again by SIGHUP or when the file
 * changes. A file with a mistake is refused with its line and the agent goes on with the one before. */
#pragma once

#include "base/err.h"

struct agent;

/* agent_config_load() - into agent->config and agent->plugin_config; unchanged unless 0 is returned. Without
 * --config the defaults. */
int agent_config_load(struct agent *agent, struct err *err);

/* agent_config_watch() - from now on follow SIGHUP and the file. */
int agent_config_watch(struct agent *agent, struct err *err);
void agent_config_unwatch(struct agent *agent);
