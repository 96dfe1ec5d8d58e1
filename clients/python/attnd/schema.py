"""schema.py: the members of requests and of results. Made from the server's /openapi.json: `make client-types`."""

from typing import Any, Dict, List, Literal, Mapping, Protocol, Sequence, TypedDict, Union, overload

import numpy as np
from numpy.typing import NDArray


class HasArray(Protocol):
    """An array of NumPy, torch, jax, pandas, xarray, …"""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = Union[HasArray, Sequence[Any]]


AttentionOptions = TypedDict(
    "AttentionOptions",
    {
        "profile": Literal['torch_sdpa', 'torch_mha', 'onnx', 'jax', 'keras', 'flash', 'hf'],
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "num_heads": int,
        "kv_num_heads": int,
        "scale": Union[float, Literal['none']],
        "softcap": float,
        "rope": Union[bool, Literal['half', 'interleaved', 'interleaved_to_half'], Mapping[str, Any]],
        "qk_norm": Union[bool, Literal['rms', 'layer', 'l2'], Mapping[str, Any]],
        "dropout": Union[float, Mapping[str, Any]],
        "training": bool,
        "mechanism": Union[Literal['softmax', 'linear', 'performer'], Mapping[str, Any]],
        "return": Union[Literal['query_latent', 'key_latent', 'q', 'k', 'v', 'q_rotated', 'k_rotated', 'scores', 'scaled', 'masked', 'attention', 'dropped', 'difference', 'lse', 'lse_keys', 'entropy', 'sink', 'context', 'concat', 'gated', 'projected', 'contribution', 'residual', 'attention_output', 'feed_forward', 'output', 'present_key', 'present_value', 'present_state', 'attention_mean', 'mask'], Array],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'uint8'],
        "alibi": Union[bool, Array, Mapping[str, Any]],
        "relative_bias": Mapping[str, Any],
        "relative_position": Mapping[str, Any],
        "cache": Union[str, Mapping[str, Any]],
        "sinks": Union[Array, Mapping[str, Any]],
        "head_scale": Union[Array, Mapping[str, Any]],
        "differential": Union[Array, Mapping[str, Any]],
    },
    total=False,
)

LayerOptions = TypedDict(
    "LayerOptions",
    {
        "profile": Literal['torch_sdpa', 'torch_mha', 'onnx', 'jax', 'keras', 'flash', 'hf'],
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "num_heads": int,
        "kv_num_heads": int,
        "scale": Union[float, Literal['none']],
        "softcap": float,
        "residual": bool,
        "rope": Union[bool, Literal['half', 'interleaved', 'interleaved_to_half'], Mapping[str, Any]],
        "qk_norm": Union[bool, Literal['rms', 'layer', 'l2'], Mapping[str, Any]],
        "latent_norm": Union[bool, Literal['rms', 'layer', 'l2'], Mapping[str, Any]],
        "norm": Union[bool, Literal['layer', 'rms'], Mapping[str, Any]],
        "feed_forward": Mapping[str, Any],
        "dropout": Union[float, Mapping[str, Any]],
        "training": bool,
        "mechanism": Union[Literal['softmax', 'linear', 'performer'], Mapping[str, Any]],
        "return": Union[Literal['query_latent', 'key_latent', 'q', 'k', 'v', 'q_rotated', 'k_rotated', 'scores', 'scaled', 'masked', 'attention', 'dropped', 'difference', 'lse', 'lse_keys', 'entropy', 'sink', 'context', 'concat', 'gated', 'projected', 'contribution', 'residual', 'attention_output', 'feed_forward', 'output', 'present_key', 'present_value', 'present_state', 'attention_mean', 'mask'], Array],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'uint8'],
        "alibi": Union[bool, Array, Mapping[str, Any]],
        "relative_bias": Mapping[str, Any],
        "relative_position": Mapping[str, Any],
        "cache": Union[str, Mapping[str, Any]],
        "sinks": Union[Array, Mapping[str, Any]],
        "head_scale": Union[Array, Mapping[str, Any]],
        "differential": Union[Array, Mapping[str, Any]],
    },
    total=False,
)

ModelIntervention = TypedDict(
    "ModelIntervention",
    {
        "at": Literal['hidden', 'attention', 'context', 'attention_output', 'feed_forward'],
        "do": Literal['zero', 'mean', 'scale', 'add', 'replace', 'mask'],
        "part": Literal['encoder', 'decoder', 'cross'],
        "layers": Union[Array, str, Mapping[str, Any]],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "items": Union[Array, str, Mapping[str, Any]],
        "factor": float,
        "value": Union[Array, Mapping[str, Any]],
        "from": int,
        "from_queries": Union[Array, str, Mapping[str, Any]],
    },
    total=False,
)

ModelSweep = TypedDict(
    "ModelSweep",
    {
        "at": Literal['hidden', 'attention', 'context', 'attention_output', 'feed_forward'],
        "do": Literal['zero', 'mean', 'scale', 'add', 'replace', 'mask'],
        "part": Literal['encoder', 'decoder', 'cross'],
        "layers": Union[Array, str, Mapping[str, Any]],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "items": Union[Array, str, Mapping[str, Any]],
        "factor": float,
        "value": Union[Array, Mapping[str, Any]],
        "from": int,
        "from_queries": Union[Array, str, Mapping[str, Any]],
        "over": Sequence[Literal['layer', 'query', 'head']],
    },
    total=False,
)

ModelMetric = TypedDict(
    "ModelMetric",
    {
        "words": Array,
        "query": int,
    },
    total=False,
)

ModelOptions = TypedDict(
    "ModelOptions",
    {
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "return": Union[Literal['hidden', 'output', 'features', 'logits', 'rollout', 'head_scores', 'experts', 'predictions', 'logit_lens', 'word_scores', 'attribution', 'sweep', 'classes', 'embedding', 'word_times', 'generated', 'query_latent', 'key_latent', 'q', 'k', 'v', 'q_rotated', 'k_rotated', 'scores', 'scaled', 'masked', 'attention', 'dropped', 'difference', 'lse', 'lse_keys', 'entropy', 'sink', 'context', 'concat', 'gated', 'projected', 'contribution', 'residual', 'attention_output', 'feed_forward', 'present_key', 'present_value', 'present_state', 'attention_mean', 'mask'], Array],
        "layers": Union[Array, str, Mapping[str, Any]],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'uint8'],
        "ablate": Array,
        "words": Union[Literal['next'], Array],
        "interventions": Sequence[ModelIntervention],
        "sweep": ModelSweep,
        "metric": ModelMetric,
        "predictions_k": int,
        "new_tokens": int,
        "stop": Union[str, int, Array],
        "truncate": bool,
        "special_tokens": bool,
    },
    total=False,
)

ModelGradientOptions = TypedDict(
    "ModelGradientOptions",
    {
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "return": Union[Literal['attention', 'embedding', 'attention_gradient', 'integrated'], Array],
        "layers": Union[Array, str, Mapping[str, Any]],
        "heads": Union[Array, str, Mapping[str, Any]],
        "queries": Union[Array, str, Mapping[str, Any]],
        "keys": Union[Array, str, Mapping[str, Any]],
        "digits": int,
        "metric": ModelMetric,
        "steps": int,
        "baseline": Literal['zero', 'pad'],
        "truncate": bool,
        "special_tokens": bool,
    },
    total=False,
)

Masks = TypedDict(
    "Masks",
    {
        "causal": Union[bool, Mapping[str, Any]],
        "attend": Union[bool, int, Array, Mapping[str, Any]],
        "bias": Union[float, Array, Mapping[str, Any]],
        "padding": Union[Array, Mapping[str, Any]],
        "key_lengths": Union[int, Array, Mapping[str, Any]],
        "query_lengths": Union[int, Array, Mapping[str, Any]],
        "window": Array,
        "sliding_window": int,
        "documents": Union[Array, Mapping[str, Any]],
        "blocks": Mapping[str, Any],
    },
    total=False,
)

KeptLayer = TypedDict(
    "KeptLayer",
    {
        "name": str,
        "digest": str,
        "bytes": int,
        "durable": bool,
        "modified": str,
        "d_model": int,
        "d_key": int,
        "d_value": int,
        "d_out": int,
        "num_heads": int,
        "kv_num_heads": int,
        "d_k": int,
        "d_v": int,
        "d_ff": int,
        "parameters": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'int64', 'int32', 'uint8', 'bool'],
        "compute": Literal['float32', 'float64'],
        "tensors": List[Mapping[str, Any]],
        "request": Mapping[str, Any],
        "state": Literal['ready', 'broken', 'unloaded'],
        "reason": str,
    },
    total=False,
)

Model = TypedDict(
    "Model",
    {
        "name": str,
        "state": Literal['loading', 'ready', 'broken'],
        "reason": str,
        "type": str,
        "architecture": str,
        "kind": Literal['encoder', 'decoder', 'encoder-decoder', 'image', 'audio'],
        "layers": int,
        "decoder_layers": int,
        "heads": int,
        "decoder_heads": int,
        "d_model": int,
        "vocabulary": Union[int, None],
        "longest": Union[int, None],
        "mels": int,
        "frames": int,
        "image": int,
        "parameters": int,
        "dtype": Literal['float32', 'float64', 'float16', 'bfloat16', 'int64', 'int32', 'uint8', 'bool'],
        "bytes": int,
        "tokenizer": bool,
        "tokenizer_reason": str,
        "returns": List[str],
        "labels": List[str],
        "ignored": List[str],
        "absent": List[str],
    },
    total=False,
)

ModelTokens = TypedDict(
    "ModelTokens",
    {
        "ids": List[List[int]],
        "tokens": List[List[Union[str, None]]],
        "shown": List[List[Union[str, None]]],
        "lengths": List[int],
        "offsets": List[List[List[int]]],
        "special": List[List[bool]],
        "type_ids": List[List[int]],
        "segments": List[List[Union[int, None]]],
        "text": List[str],
        "diagnostics": Mapping[str, Any],
    },
    total=False,
)

Effective = TypedDict(
    "Effective",
    {
        "mechanism": Union[Literal['softmax'], Mapping[str, Any]],
        "scale": float,
        "num_heads": int,
        "kv_num_heads": int,
        "d_k": int,
        "d_v": int,
        "batch": int,
        "q_len": int,
        "kv_len": int,
        "compute": Literal['float32', 'float64', 'bfloat16'],
        "kernel": str,
        "qk_norm": Mapping[str, Any],
        "latent_norm": Mapping[str, Any],
        "rope": Mapping[str, Any],
        "past_len": int,
        "causal_offset": Union[int, List[int]],
        "window": List[Union[int, None]],
        "alibi": List[float],
        "relative_bias": Mapping[str, Any],
        "relative_position": Mapping[str, Any],
        "softcap": float,
        "layout": Literal['in_out', 'out_in'],
        "residual": bool,
        "norm": Mapping[str, Any],
        "feed_forward": Mapping[str, Any],
        "dropout": Mapping[str, Any],
        "heads": List[int],
        "queries": List[int],
        "keys": List[int],
        "pool": Mapping[str, Any],
        "top_k": int,
        "dtype": str,
        "profile": Literal['torch_sdpa', 'torch_mha', 'onnx', 'jax', 'keras', 'flash', 'hf'],
        "profile_defaults": Mapping[str, Any],
        "model": str,
        "model_type": str,
        "layers": int,
        "interventions": List[Mapping[str, Any]],
        "new_tokens": int,
        "sweep": Mapping[str, Any],
        "metric": Mapping[str, Any],
        "words": Union[Literal['next'], List[int]],
    },
    total=False,
)

Diagnostics = TypedDict(
    "Diagnostics",
    {
        "rows_without_keys": List[List[int]],
        "rows_without_keys_count": int,
        "max_abs_score": float,
        "entropy_per_head": List[Union[float, Literal['NaN', 'Infinity', '-Infinity']]],
        "first_key_share_per_head": List[Union[float, Literal['NaN', 'Infinity', '-Infinity']]],
        "rows_on_one_key_count": int,
        "rows_underflowing_count": int,
        "rows_not_finite_count": int,
        "softcap": Mapping[str, Any],
        "bias_as_mask": Mapping[str, Any],
        "not_finite": Mapping[str, Any],
        "hints": List[Mapping[str, Any]],
    },
    total=False,
)

ModelItemTokens = TypedDict(
    "ModelItemTokens",
    {
        "ids": List[List[int]],
        "text": List[List[Union[str, None]]],
        "shown": List[List[Union[str, None]]],
        "offsets": List[List[List[int]]],
    },
    total=False,
)

Tokens = TypedDict(
    "Tokens",
    {
        "query": Union[List[str], List[List[str]]],
        "key": Union[List[str], List[List[str]]],
        "ids": List[List[int]],
        "text": List[List[Union[str, None]]],
        "shown": List[List[Union[str, None]]],
        "offsets": List[List[List[int]]],
        "encoder": ModelItemTokens,
        "decoder": ModelItemTokens,
    },
    total=False,
)

Generated = TypedDict(
    "Generated",
    {
        "ids": List[List[int]],
        "text": List[str],
        "ended_by": List[Literal['end', 'stop', 'length']],
    },
    total=False,
)

TopKOut = TypedDict(
    "TopKOut",
    {
        "indices": NDArray[np.int64],
        "weights": NDArray[Any],
    },
    total=False,
)

ModelWords = TypedDict(
    "ModelWords",
    {
        "ids": NDArray[np.int64],
        "tokens": List[Any],
        "shown": List[Any],
        "probabilities": NDArray[Any],
        "logits": NDArray[Any],
        "log_probabilities": NDArray[Any],
        "ranks": NDArray[np.int64],
    },
    total=False,
)

ModelWordScores = TypedDict(
    "ModelWordScores",
    {
        "logits": NDArray[Any],
        "log_probabilities": NDArray[Any],
        "ranks": NDArray[np.int64],
        "perplexity": NDArray[Any],
    },
    total=False,
)

ModelAttribution = TypedDict(
    "ModelAttribution",
    {
        "heads": NDArray[Any],
        "cross_heads": NDArray[Any],
        "feed_forward": NDArray[Any],
        "embedding": NDArray[Any],
        "bias": NDArray[Any],
    },
    total=False,
)

ModelSweepValues = TypedDict(
    "ModelSweepValues",
    {
        "values": NDArray[Any],
        "unchanged": NDArray[Any],
    },
    total=False,
)

ModelAnswerSpan = TypedDict(
    "ModelAnswerSpan",
    {
        "tokens": List[int],
        "probability": Union[float, None],
        "offsets": List[int],
        "text": str,
    },
    total=False,
)

ModelClasses = TypedDict(
    "ModelClasses",
    {
        "labels": List[str],
        "logits": NDArray[Any],
        "probabilities": NDArray[Any],
        "start": NDArray[Any],
        "end": NDArray[Any],
        "answer": List[Union[ModelAnswerSpan, None]],
    },
    total=False,
)

ModelHeadScores = TypedDict(
    "ModelHeadScores",
    {
        "previous_token": NDArray[Any],
        "first_token": NDArray[Any],
        "same_token": NDArray[Any],
        "induction": NDArray[Any],
        "entropy": NDArray[Any],
    },
    total=False,
)

ModelSpokenWord = TypedDict(
    "ModelSpokenWord",
    {
        "text": str,
        "tokens": List[int],
        "start": float,
        "end": float,
    },
    total=False,
)

ModelWordTimes = TypedDict(
    "ModelWordTimes",
    {
        "start": NDArray[Any],
        "end": NDArray[Any],
        "words": List[List[ModelSpokenWord]],
    },
    total=False,
)

ModelExperts = TypedDict(
    "ModelExperts",
    {
        "indices": NDArray[np.int64],
        "weights": NDArray[Any],
    },
    total=False,
)


class Outputs:
    """What an answer has by name: arrays, and dicts of arrays and words."""

    outputs: Dict[str, Any]

    @overload
    def __getitem__(self, name: Literal['head_scores', 'encoder_head_scores', 'decoder_head_scores']) -> ModelHeadScores: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['experts']) -> ModelExperts: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['predictions', 'logit_lens']) -> ModelWords: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['word_scores']) -> ModelWordScores: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['attribution']) -> ModelAttribution: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['sweep']) -> ModelSweepValues: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['classes']) -> ModelClasses: ...  # type: ignore

    @overload
    def __getitem__(self, name: Literal['word_times']) -> ModelWordTimes: ...  # type: ignore

    @overload
    def __getitem__(self, name: str) -> NDArray[Any]: ...

    def __getitem__(self, name: str) -> Any:
        return self.outputs[name]
