/*
 * job.h: computes the answer to a request whose body is there, in this thread or in one of the executor.
 */
#ifndef HTTP_JOB_H
#define HTTP_JOB_H

#include "http/request.h"

/*
 * A small request takes some ten microseconds, and waking a compute thread, which then wakes this one, several times as
 * long. So what is bounded to be small, by its body before it is read and by its plan before it is computed, is done
 * here and now. A body that turns out to mean more is read for nothing: false, and it is to be submitted.
 */
bool job_compute_at_once(struct request *request);

/*
 * Hands the request to a compute thread, with its connection suspended, which is resumed when the reply is there.
 * False: the reply is there already, a refusal.
 */
bool job_submit(struct request *request);

#endif
