/* Leave: what the agent does between SIGTERM and its end.
 *
 * The kubelet refuses a pod that it is given while nobody serves its device plugin: it fails, and is not
 * tried again. So whoever places pods is told first (condition Ready of the NodeAccelerators object, reason
 * SUMMARY_LEAVES), and the plugin serves on for those that were placed just before. The agent that comes
 * next tells its inventory when the kubelet has its lists (node_report.h), and with that the node is open
 * again. An agent that is killed tells nobody; nor is there anything to wait for without a kubelet or an API
 * server. */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"

#define LEAVE_USEC UINT64_C(1500000) /* a pod that was bound reaches the kubelet, and has its devices */

/* leave_begin() - it is told. Return: is it to serve on for LEAVE_USEC? */
bool leave_begin(struct agent *agent);
