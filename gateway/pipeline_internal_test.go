package gateway

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProviderOf(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"https://api.anthropic.com": "anthropic", "https://API.openai.com/v1": "openai", "https://mine.openai.azure.com": "azure.ai.openai",
		"https://europe-west1-aiplatform.googleapis.com": "gcp.vertex_ai", "http://127.0.0.1:8080": "mine", "https://notopenai.com": "mine", "https://api.openai.com.example.org": "mine",
		"https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1": "aws.bedrock", "https://bedrock-mantle.us-west-2.api.aws/v1": "aws.bedrock", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn": "aws.bedrock",
		"https://runtime.sagemaker.us-east-1.amazonaws.com": "mine", "https://bedrock-runtime.example.org": "mine", "https://bedrock-runtime.us-east-1.amazonaws.com.example.org": "mine", "https://api.moonshot.cn": "moonshot_ai",
	} {
		u, err := url.Parse(to)
		require.NoError(t, err)
		require.Equal(t, want, providerOf("mine", u), to)
	}
}
