/*
 * probes.h: answers at once from the state of the server: health, version and metrics, under their own paths and under
 * those of the Open Inference Protocol.
 */
#ifndef HTTP_PROBES_H
#define HTTP_PROBES_H

struct request;

/* GET /livez, /readyz, /version, /metrics */
void probes_answer_live(struct request *request);
void probes_answer_ready(struct request *request);
void probes_answer_version(struct request *request);
void probes_answer_metrics(struct request *request);
/* GET /v2, /v2/health/live, /v2/health/ready */
void probes_answer_v2(struct request *request);
void probes_answer_v2_live(struct request *request);
void probes_answer_v2_ready(struct request *request);

#endif
