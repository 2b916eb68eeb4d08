import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;

/** Fetches a URL into a file. */
public class Fetch {
    public static void main(String[] words) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(words[0])).build();
        HttpResponse<Path> response =
                HttpClient.newHttpClient()
                        .send(request, HttpResponse.BodyHandlers.ofFile(Path.of(words[1])));
        System.exit(response.statusCode() == 200 ? 0 : 1);
    }
}
